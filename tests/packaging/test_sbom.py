#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a build tree is whole SPDX, and names what is really linked and compiled in. Usage: test_sbom.py ROOT
BUILD VERSION"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT, BUILD, VERSION = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
IDENTITY = re.compile(r"^SPDXRef-[A-Za-z0-9.-]+$")
# SPDX 2.3, what each must have.
REQUIRED = {
    None: {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"},
    "packages": {"name", "SPDXID", "versionInfo", "downloadLocation", "filesAnalyzed"},
    "files": {"fileName", "SPDXID", "checksums"},
    "relationships": {"spdxElementId", "relationshipType", "relatedSpdxElement"},
}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def written():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "sbom.json"
        subprocess.run([ROOT / "packaging/sbom", BUILD, path], check=True)
        return json.loads(path.read_text())


def check_form(sbom):
    for part, keys in REQUIRED.items():
        for item in [sbom] if part is None else sbom[part]:
            assert keys <= item.keys(), (part, item)
    assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["dataLicense"] == "CC0-1.0" and sbom["SPDXID"] == "SPDXRef-DOCUMENT"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", sbom["creationInfo"]["created"]) and sbom["creationInfo"]["creators"]
    assert re.match(r"^https://\S+$", sbom["documentNamespace"]) and "#" not in sbom["documentNamespace"]
    names = [item["SPDXID"] for part in ("packages", "files") for item in sbom[part]]
    assert len(names) == len(set(names)) and all(map(IDENTITY.match, names)), names
    for relation in sbom["relationships"]:
        for end in ("spdxElementId", "relatedSpdxElement"):
            assert relation[end] in {*names, "SPDXRef-DOCUMENT"}, relation
    assert {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-qtensor"} in sbom["relationships"]


def related(sbom, file, kind):
    identity = next(f["SPDXID"] for f in sbom["files"] if f["fileName"] == "./" + file)
    packages = {p["SPDXID"]: p["name"] for p in sbom["packages"]}
    ends = [(r["spdxElementId"], r["relatedSpdxElement"]) for r in sbom["relationships"] if r["relationshipType"] == kind]
    return {packages[b] for a, b in ends if a == identity} | {packages[a] for a, b in ends if b == identity}


def check_packages(sbom):
    assert sbom["packages"][0]["name"] == "qtensor" and sbom["packages"][0]["versionInfo"] == VERSION
    for package in sbom["packages"][1:]:
        installed = output("dpkg-query", "-W", "-f", "${Version} ", package["name"]).split()
        assert package["versionInfo"] in installed, package
        purl = package["externalRefs"][0]["referenceLocator"]
        assert purl.startswith(f"pkg:deb/debian/{package['name'].replace('+', '%2B')}@"), purl


def check_files(sbom):
    for file in sbom["files"]:
        path = BUILD / file["fileName"]
        assert file["checksums"] == [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}], path
        # Each library that the loader would look for comes from a package that is named.
        wanted = {name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(path))) if not name.startswith("libqtensor")}
        linked = related(sbom, file["fileName"].removeprefix("./"), "DYNAMIC_LINK")
        provided = {pathlib.Path(line).name for package in linked for line in output("dpkg-query", "-L", package).splitlines()}
        assert wanted and wanted <= provided, (path, wanted - provided)


def main():
    sbom = written()
    check_form(sbom)
    check_packages(sbom)
    check_files(sbom)
    assert related(sbom, "capi/libqtensor.so.0", "STATIC_LINK") == {"libprotozero-dev", "nlohmann-json3-dev"}, related(sbom, "capi/libqtensor.so.0", "STATIC_LINK")
    assert related(sbom, "tools/qtensor", "STATIC_LINK") == {"libcli11-dev", "nlohmann-json3-dev"}, related(sbom, "tools/qtensor", "STATIC_LINK")
    assert {"libjpeg62-turbo", "libpng16-16"} <= related(sbom, "tools/qtensor", "DYNAMIC_LINK")
    if (BUILD / "natives/libqtensor_openblas.so.0").exists():
        inside, = related(sbom, "natives/libqtensor_openblas.so.0", "STATIC_LINK")
        assert inside.startswith("libopenblas"), inside
    again = written()
    again["creationInfo"]["created"] = sbom["creationInfo"]["created"]
    assert again == sbom  # the same tree, the same text


if __name__ == "__main__":
    if subprocess.run(["which", "dpkg-query", "readelf", "ldd"], capture_output=True).returncode != 0:
        sys.exit(77)
    main()
