# SPDX-License-Identifier: Apache-2.0
"""The package for NuGet: its parts are where NuGet and .NET look for them, and each is declared; unpacked in a clean folder, a
program is compiled against the assembly and runs with the natives of the package, its BLAS among them.

usage: test_nupkg.py ROOT FILE.nupkg VERSION MCS MONO
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile

LARGEST = 25_000_000
PLATFORM = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}[platform.machine()]
NATIVE = f"runtimes/{PLATFORM}/native"
PARTS = {"[Content_Types].xml", "_rels/.rels", "QTensor.nuspec", "README.md", "LICENCES.txt", "lib/netstandard2.1/QTensor.dll",
         "lib/netstandard2.1/QTensor.xml", f"{NATIVE}/libqtensorcs.so", f"{NATIVE}/libqtensor.so.0",
         f"{NATIVE}/libqtensor_openblas.so.0"}
PROGRAM = """
using System;
using System.IO;
using System.Linq;
using QTensor;

internal static class Program {
  private static void Main(string[] arguments) {
    string digits = arguments[0];
    Tensor images = Tensor.LoadNpy(digits + "/test_images.npy");
    long[] labels = Tensor.LoadNpy(digits + "/test_labels.npy").ToArray<long>();
    Model model = Model.Load(digits + "/digits.onnx");
    foreach (Model network in new[] { model, model.Quantize(Tensor.LoadNpy(digits + "/calibration.npy")) }) {
      string engine = network == model ? "reference" : "native";  // the first needs the BLAS
      float[] scores = new Session(network, new Attrs { { "engine", engine } }).Run(images)[0].ToArray<float>();
      int right = labels.Where((label, i) => Best(scores.Skip(i * 10).Take(10).ToArray()) == label).Count();
      Console.WriteLine(right > 0.95 * labels.Length ? "right" : right + " of " + labels.Length);
    }
    Console.WriteLine(Lib.Version() + " " + typeof(Tensor).Assembly.GetName().Version);
    foreach (string file in File.ReadLines("/proc/self/maps").Where(line => line.Contains("blas") || line.Contains("qtensor"))
                 .Select(line => line.Substring(line.IndexOf('/'))).Where(file => file.Contains(".so")).Distinct())
      Console.WriteLine(file);
  }

  private static int Best(float[] scores) => Array.IndexOf(scores, scores.Max());
}
"""


def check_parts(package):
    names = set(package.namelist())
    assert PARTS == names, names ^ PARTS
    types = xml.etree.ElementTree.fromstring(package.read("[Content_Types].xml"))
    declared = {node.get("Extension") for node in types}
    undeclared = {name for name in PARTS if name.rsplit(".", 1)[-1] not in declared and name != "[Content_Types].xml"}
    assert not undeclared, f"of no content type: {undeclared}"
    relations = xml.etree.ElementTree.fromstring(package.read("_rels/.rels"))
    assert [node.get("Target") for node in relations] == ["/QTensor.nuspec"]


def check_metadata(package, version):
    space = "{http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd}"
    metadata = xml.etree.ElementTree.fromstring(package.read("QTensor.nuspec")).find(f"{space}metadata")
    said = {node.tag.removeprefix(space): (node.text or "").strip() for node in metadata}
    assert said["id"] == "QTensor" and said["version"] == version and said["authors"] and said["description"], said
    for file in "license", "readme":
        assert said[file] in PARTS, said
    assert b"OpenBLAS" in package.read("LICENCES.txt")


def check_assembly(package):
    """What is mono's .NET does not have."""
    assembly = package.read("lib/netstandard2.1/QTensor.dll")
    assert b"\0netstandard\0" in assembly and b"mscorlib" not in assembly


def check_libraries(folder):
    """Nothing of the machine that built them."""
    for library in (folder / NATIVE).iterdir():
        said = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
        paths = set(re.findall(r"PATH\).*\[(.*)\]", said))
        assert paths <= {"$ORIGIN"}, f"{library.name}: {paths}"


def check_use(folder, root, version, mcs, mono):
    program = folder / "program"
    program.mkdir()
    (program / "Program.cs").write_text(PROGRAM)
    shutil.copy(folder / "lib/netstandard2.1/QTensor.dll", program)
    for library in (folder / NATIVE).iterdir():
        shutil.copy(library, program)
    subprocess.run([mcs, "-r:QTensor.dll", "-r:Facades/netstandard.dll", "Program.cs"], cwd=program, check=True)
    ran = subprocess.run([mono, "Program.exe", f"{root}/examples/digits"], cwd=program, env={}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    first, second, versions, *files = ran.stdout.splitlines()
    assert (first, second, versions) == ("right", "right", f"{version} {version}.0"), ran.stdout
    natives = {str(program / library.name) for library in (folder / NATIVE).iterdir()}
    assert natives == set(files), f"not of the package: {natives ^ set(files)}"


def main():
    root, file, version, mcs, mono = sys.argv[1:]
    size = pathlib.Path(file).stat().st_size
    assert size < LARGEST and pathlib.Path(file).name == f"QTensor.{version}.nupkg", f"{file}: {size} bytes"
    with zipfile.ZipFile(file) as package, tempfile.TemporaryDirectory() as folder:
        check_parts(package)
        check_metadata(package, version)
        check_assembly(package)
        package.extractall(folder)
        check_libraries(pathlib.Path(folder))
        check_use(pathlib.Path(folder), root, version, mcs, mono)
    print(f"{pathlib.Path(file).name}: {size} bytes")


main()
