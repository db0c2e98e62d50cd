#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""A server of OpenBao for tests, in this directory: TLS with a CA of its own, storage in memory, an audit log.

    bao.py start BAO HOST        start it; when this returns, it is unsealed, and transit and the logins are there
    bao.py api METHOD PATH [JSON [TOKEN]]        one request, by root's token; prints "STATUS ANSWER"
    bao.py seal | unseal | stop
    bao.py jwt SUBJECT           a JWT that the server's auth/jwt accepts
    bao.py requests              what the audit log has: a line "NUMBER PATH" for each path of transit and login, and one
                                 "NUMBER PATH limited" if some were refused by a rate limit
"""
import base64
import collections
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

POLICY = """
path "transit/decrypt/lab" { capabilities = ["update"] }
path "transit/encrypt/lab" { capabilities = ["update"] }
path "transit/keys/lab" { capabilities = ["read"] }
path "transit/hmac/lab/sha2-256" { capabilities = ["update"] }
"""
READER = 'path "transit/decrypt/lab" { capabilities = ["update"] }'


def openssl(*arguments):
    subprocess.run(("openssl",) + arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificates(host):
    for name, subject, extension in (("ca", "/CN=a CA", "basicConstraints=critical,CA:TRUE"),
                                     ("server", "/CN=a server", "subjectAltName=IP:%s,DNS:keys.example" % host),
                                     ("client", "/CN=a client", "extendedKeyUsage=clientAuth"),
                                     ("other", "/CN=another CA", "basicConstraints=critical,CA:TRUE")):
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", name + ".key")
        openssl("req", "-new", "-key", name + ".key", "-subj", subject, "-out", name + ".csr")
        with open(name + ".ext", "w") as file:
            file.write(extension + "\n")
        sign = ("-signkey", name + ".key") if name in ("ca", "other") else ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl("x509", "-req", "-in", name + ".csr", "-days", "30", "-extfile", name + ".ext", "-out", name + ".pem", *sign)
    openssl("pkey", "-in", "server.key", "-pubout", "-out", "jwt.pub")


def api(method, path, body=None, token=None, certificate=()):
    if token is None and os.path.exists("root"):
        with open("root") as file:
            token = file.read()
    with open("address") as file:
        address = file.read()
    request = urllib.request.Request("%s/v1/%s" % (address, path), None if body is None else json.dumps(body).encode(), method=method)
    if token:
        request.add_header("X-Vault-Token", token)
    context = ssl.create_default_context(cafile="ca.pem")
    if certificate:
        context.load_cert_chain(*certificate)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else {}
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def good(method, path, body=None):
    status, answer = api(method, path, body)
    if status >= 300:
        sys.exit("%s %s: %d %s" % (method, path, status, answer))
    return answer


def secret(name, text):
    with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def start(bao, host):
    certificates(host)
    with socket.socket() as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    here = os.getcwd()
    with open("address", "w") as file:
        file.write("https://%s:%d" % (host, port))
    with open("bao.hcl", "w") as file:
        file.write("""storage "inmem" {}
listener "tcp" {
  address = "%s:%d"
  tls_cert_file = "%s/server.pem"
  tls_key_file = "%s/server.key"
}
audit "file" "log" {
  options { file_path = "%s/audit.log" }
}
""" % (host, port, here, here, here))
    with open("bao.log", "w") as log:
        process = subprocess.Popen([bao, "server", "-config=bao.hcl"], stdout=log, stderr=log, start_new_session=True)
    with open("pid", "w") as file:
        file.write(str(process.pid))
    while True:
        try:
            api("GET", "sys/init")
            break
        except urllib.error.URLError:
            if process.poll() is not None:
                with open("bao.log") as file:
                    sys.exit(file.read())
            time.sleep(0.05)
    answer = good("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
    secret("unseal", answer["keys"][0])
    secret("root", answer["root_token"])
    unseal()
    good("POST", "sys/mounts/transit", {"type": "transit"})
    good("PUT", "sys/policies/acl/lab", {"policy": POLICY})
    good("PUT", "sys/policies/acl/reader", {"policy": READER})
    for kind in ("approle", "cert", "jwt"):
        good("POST", "sys/auth/" + kind, {"type": kind})
    good("POST", "auth/approle/role/job", {"token_policies": "lab", "token_ttl": "60s", "token_max_ttl": "600s"})
    secret("role-id", good("GET", "auth/approle/role/job/role-id")["data"]["role_id"])
    secret("secret-id", good("POST", "auth/approle/role/job/secret-id")["data"]["secret_id"])
    with open("client.pem") as file:
        good("POST", "auth/cert/certs/job", {"certificate": file.read(), "token_policies": "lab"})
    with open("jwt.pub") as file:
        good("POST", "auth/jwt/config", {"jwt_validation_pubkeys": [file.read()]})
    good("POST", "auth/jwt/role/job", {"role_type": "jwt", "user_claim": "sub", "bound_audiences": ["keys"], "token_policies": "lab"})
    for policy in ("lab", "reader"):
        secret("token-" + policy, good("POST", "auth/token/create", {"policies": [policy]})["auth"]["client_token"])


def unseal():
    with open("unseal") as file:
        good("PUT", "sys/unseal", {"key": file.read()})
    while api("GET", "sys/health")[0] != 200:
        time.sleep(0.05)


def stop():
    with open("pid") as file:
        pid = int(file.read())
    os.kill(pid, signal.SIGKILL)
    while os.path.exists("/proc/%d" % pid) and "Z" not in open("/proc/%d/stat" % pid).read().split()[2:3]:
        time.sleep(0.01)


def jwt(subject):
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    with open("server.key", "rb") as file:
        key = serialization.load_pem_private_key(file.read(), None)
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (
        {"alg": "ES256", "typ": "JWT"}, {"sub": subject, "aud": "keys", "iat": int(time.time()), "exp": int(time.time()) + 600}))
    r, s = utils.decode_dss_signature(key.sign(text, ec.ECDSA(hashes.SHA256())))
    return (text + b"." + base64.urlsafe_b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).rstrip(b"=")).decode()


def requests():
    seen = collections.Counter()
    with open("audit.log") as file:
        for line in file:
            entry = json.loads(line)
            path = entry["request"]["path"]
            if entry["type"] == "request" and (path.startswith("transit/") or path.endswith("/login") or path.endswith("/renew-self")):
                seen[path + (" limited" if "rate limit" in entry.get("error", "") else "")] += 1
    for path in sorted(seen):
        print(seen[path], path)


def main():
    verb, arguments = sys.argv[1], sys.argv[2:]
    if verb == "api":
        print(*api(arguments[0], arguments[1], json.loads(arguments[2]) if arguments[2:] else None, *arguments[3:]))
    elif verb == "seal":
        good("PUT", "sys/seal")
    elif verb == "jwt":
        secret("jwt", jwt(*arguments))
    else:
        {"start": start, "stop": stop, "unseal": unseal, "requests": requests}[verb](*arguments)


if __name__ == "__main__":
    main()
