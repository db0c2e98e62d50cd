# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""sbom.py INVENTORY.RST ARCHIVE: the bill of materials, as CycloneDX 1.5, on standard output.

The libraries are those of the first table of docs/inventory.rst, which shell/inventory compares with what is built.  They
are the system's, so that there is no version.  The archive's name has ours, and SOURCE_DATE_EPOCH the time.
"""
import datetime
import hashlib
import json
import os
import re
import sys
import uuid


def rows(text):
    """(first column, third column) of the first simple table; a row goes on where the second column is empty, or after a comma."""
    lines = text.split("\n")
    rules = [n for n, line in enumerate(lines) if re.fullmatch(r"=+ +=+ +=+", line)][:3]
    second, third = [match.end() for match in re.finditer(r"=+ +", lines[rules[0]])]
    found = []
    for line in lines[rules[1] + 1:rules[2]]:
        first, middle, how = line[:second].strip(), line[second:third].strip(), line[third:].strip()
        if first and middle and not (found and found[-1][0].endswith(",")):
            found.append((first, how))
        else:
            found[-1] = " ".join(filter(None, (found[-1][0], first))), " ".join(filter(None, (found[-1][1], how)))
    return found


def main():
    inventory, archive = sys.argv[1:]
    name, version = re.fullmatch(r"(.*)-([0-9.]+)\.tar\.gz", os.path.basename(archive)).groups()
    with open(archive, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    with open(inventory, encoding="utf-8") as file:
        found = rows(file.read())
    license_of_ours = [{"license": {"id": "BSD-3-Clause"}}]
    ours = {"type": "library", "bom-ref": name, "name": name, "version": version, "licenses": license_of_ours,
            "hashes": [{"alg": "SHA-256", "content": digest}]}
    components = []
    for libraries, how in found:
        for library in re.findall(r"``([^`]+)``|(PKCS#11|Python|matplotlib|scipy)", libraries):
            library = library[0] or library[1]
            library = "BoringSSL's " + library if libraries.startswith("BoringSSL") else library
            components.append({"type": "library", "bom-ref": library, "name": library,
                               "scope": "required" if "optional" not in how and how.startswith("linked") else "optional",
                               "description": how})
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, digest)),
        "metadata": {"timestamp": datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                     "component": ours},
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": [one["bom-ref"] for one in components]}]}, indent=2))


if __name__ == "__main__":
    main()
