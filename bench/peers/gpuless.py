"""Lets the PyTorch of PyPI run without the two gigabytes of GPU libraries it asks for.

    python bench/peers/gpuless.py

PyPI's wheel for Linux is linked to NVIDIA's libraries, also where there is no GPU.
Each one that is missing gets a stand-in beside PyTorch's own, whose functions all
answer "no device". What runs on the processor never calls them. It needs a C compiler.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

NO_DEVICE = 100  # cudaErrorNoDevice
GPU = re.compile(r"lib(cu|nccl|nvrtc|nvshmem)")  # libraries that may be left out


def dump(flag, library):
    return subprocess.run(["readelf", "-W", flag, library], check=True, capture_output=True, text=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", dump("-d", library))


def symbols(library):
    """Yields (name, version, whether the library itself defines it); weak references are left out."""
    for line in dump("--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].endswith(":") and not (fields[6] == "UND" and fields[4] == "WEAK"):
            name, _, version = fields[7].partition("@")
            yield name, version.lstrip("@"), fields[6] != "UND"


def versions(library):
    """Maps each version of symbols that the library needs to the library that it is of."""
    of, current = {}, ""
    for line in dump("-V", library).splitlines():
        if found := re.search(r"Version: \d+\s+File: (\S+)", line):
            current = found[1]
        elif current and (found := re.search(r"Name: (\S+)\s+Flags", line)):
            of[found[1]] = current
    return of


def missing(libraries):
    """Returns the symbols of each GPU library that is not there, as {library: {version: names}}."""
    there = {library.name for library in libraries}
    absent = {name for library in libraries for name in needed(library) if GPU.match(name) and name not in there}
    defined, wanted = set(), {}
    for library in libraries:
        for name, version, own in symbols(library):
            defined.add(name) if own else wanted.setdefault(name, version)
    stubs = {library: {"TALLY": {"tally_no_device"}} for library in absent}
    of = {version: name for library in libraries for version, name in versions(library).items()}
    anywhere = min(absent, default=None)  # references without a version are met by any library
    for name, version in wanted.items():
        library = of.get(version, "")
        if not version and name not in defined and not name.startswith(("Py", "_Py")):
            library = anywhere
        if library in absent:
            stubs[library].setdefault(version or "TALLY", set()).add(name)
    return stubs


def build(folder, library, names):
    with tempfile.TemporaryDirectory() as tmp:
        source, script = pathlib.Path(tmp, "stub.c"), pathlib.Path(tmp, "script")
        lines = [f"static int none(void) {{ return {NO_DEVICE}; }}"]
        lines += [f'int {name}() __attribute__((alias("none")));' for some in names.values() for name in sorted(some)]
        source.write_text("\n".join(lines))
        script.write_text("".join(f"{v} {{ global: {'; '.join(sorted(some))}; }};\n" for v, some in names.items()))
        subprocess.run(
            ["cc", "-w", "-fno-builtin", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{library}",
             f"-Wl,--version-script={script}", "-o", folder / library, source], check=True,
        )  # fmt: skip


def main():
    site = pathlib.Path(sysconfig.get_paths()["purelib"])
    libraries = [p for p in (site / "torch").rglob("*.so*") if p.is_file()]
    if not libraries:
        sys.exit(f"{site} holds no PyTorch")
    stubs = missing(libraries)
    if stubs and not (shutil.which("cc") and shutil.which("readelf")):
        sys.exit("a C compiler and readelf are missing: apt-get install gcc")
    for library, names in stubs.items():
        build(site / "torch" / "lib", library, names)
    subprocess.run([sys.executable, "-c", "import torch, torchvision; assert not torch.cuda.is_available()"], check=True)


if __name__ == "__main__":
    main()
