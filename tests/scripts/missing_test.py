#!/usr/bin/env python3
"""The scripts end with one line and exit code 3 where something is missing: each kind of it, in a copy of the
scripts beside stand-ins for the programs that they call."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = "bash sed tail head df grep id dirname basename nproc mkdir cat awk rm env sort find mktemp uniq readlink".split()
GATE = "../.ci/run"
SCRIPTS = ["quickstart.sh", "test.sh", "tidy.sh", "cluster.sh", GATE]
FOLDERS = {GATE: "build/dev", "quickstart.sh": "build/release", "test.sh": "build/dev", "tidy.sh": "build/tidy", "cluster.sh": "build/cluster"}


class Missing(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name, "tree")
        self.bin = pathlib.Path(scratch.name, "bin")
        self.bin.mkdir()
        self.tree.mkdir()
        for folder in ("scripts", ".ci"):
            shutil.copytree(ROOT / folder, self.tree / folder)
        for tool in TOOLS:
            os.symlink(shutil.which(tool), self.bin / tool)
        # All packages are there, nothing is fetched, and what configures and builds is content.
        self.stand_in("dpkg-query", "echo install ok installed")
        (self.tree / "scripts" / "imgui.sh").write_text("#!/bin/bash\n")
        for tool in ("cmake", "ninja", "c++", "git", "python3", "ctest", "nvcc"):
            self.stand_in(tool, "exit 0")

    def stand_in(self, name, text):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_script(self, name, *words, **environment):
        arguments = ["--all"] if name == "tidy.sh" else words
        return subprocess.run(
            [str(self.tree / "scripts" / name), *arguments], env={"PATH": str(self.bin), **environment},
            capture_output=True, text=True, timeout=60, check=False)

    def refuses(self, name, *words, **environment):
        done = self.run_script(name, **environment)
        said = done.stderr.strip().splitlines()
        self.assertEqual((done.returncode, len(said)), (3, 1), (name, done.stdout, done.stderr))
        self.assertTrue(said[0].startswith(pathlib.Path(name).name + ": "), said)
        for word in words:
            self.assertIn(word, said[0])

    def test_no_network(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", "echo 'E: Failed to fetch a list' >&2; exit 100")
        for name in SCRIPTS:
            self.refuses(name, "apt-get update", "Failed to fetch a list", "network")

    def test_a_package_that_cannot_be_installed(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", '[ "$2" = update ] && exit 0; echo "E: no room in /var" >&2; exit 100')
        for name in SCRIPTS:
            self.refuses(name, "apt-get install", "no room in /var")

    def test_no_right_to_install(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("id", "echo 1000")
        for name in SCRIPTS:
            self.refuses(name, "as root: apt-get install", "ninja-build")

    def test_no_tool(self):
        (self.bin / "ninja").unlink()
        for name in SCRIPTS:
            self.refuses(name, "no ninja", "install it")

    def test_no_compiler(self):
        (self.bin / "c++").unlink()
        for name in SCRIPTS:
            self.refuses(name, "no C++ compiler", "CXX")

    def test_a_tree_that_cannot_be_written(self):
        (self.tree / "build").write_text("")
        for name in SCRIPTS:
            self.refuses(name, "cannot be written", FOLDERS[name])

    def test_a_disk_without_room(self):
        self.stand_in("df", "echo Avail; echo 100000")
        for name in SCRIPTS:
            self.refuses(name, "97 MiB are free", FOLDERS[name], "make room")

    def test_a_disk_that_fills(self):
        for name in ("quickstart.sh", "test.sh"):
            self.stand_in("df", "echo Avail; echo 99999999")
            self.stand_in("cmake", f"""[ "$1" = --build ] || exit 0
printf '#!/bin/bash\\necho Avail; echo 0\\n' > {self.bin}/df
exit 1""")
            self.refuses(name, "is full", "make room")

    def test_a_disk_that_fills_under_the_gate(self):
        for tool in ("tee", "date"):
            os.symlink(shutil.which(tool), self.bin / tool)
        for tool in ("clang-format-14", "xargs"):
            self.stand_in(tool, "exit 0")
        self.stand_in("df", "echo Avail; echo 99999999")
        self.stand_in("cmake", f"""[ "$1" = --build ] || exit 0
printf '#!/bin/bash\\necho Avail; echo 0\\n' > {self.bin}/df
exit 1""")
        done = self.run_script(GATE)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("is full: make room", done.stdout)
        self.assertIn("1 passed, 4 failed", done.stdout)

    def test_the_folder_of_another_checkout(self):
        for name in SCRIPTS:
            self.cache(name, "CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else")
            self.refuses(name, "/somewhere/else", "rm -r " + FOLDERS[name])

    def test_the_folder_of_a_compiler_that_went(self):
        for name in SCRIPTS:
            self.cache(name, "CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/g++-99")
            self.refuses(name, "/usr/bin/g++-99", "rm -r " + FOLDERS[name])

    def test_the_folder_of_another_compiler(self):
        self.stand_in("other", "exit 0")
        for name in SCRIPTS:
            self.cache(name, f"CMAKE_CXX_COMPILER:STRING={self.bin}/c++")
            self.refuses(name, "CXX is other", "rm -r " + FOLDERS[name], CXX="other")

    def test_a_project_that_cannot_be_configured(self):
        self.stand_in("cmake", "exit 1")
        for name in ("quickstart.sh", "test.sh", "cluster.sh"):
            self.refuses(name, "could not be configured")

    def test_bad_use_of_the_cluster_script(self):
        for words, said in ((("--architectures", "sm_90"), "--architectures sm_90: not as 90-real"), (("--architectures",), "takes a value"),
                            (("one", "two"), "one folder, not one and two"), (("--small",), "unknown flag --small")):
            done = self.run_script("cluster.sh", *words)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_folder_of_this_checkout_is_built_in(self):
        self.cache("test.sh", f"CMAKE_HOME_DIRECTORY:INTERNAL={self.tree}", f"CMAKE_CXX_COMPILER:STRING={self.bin}/c++")
        costs = self.tree / "build/dev/Testing/Temporary/CTestCostData.txt"
        costs.parent.mkdir(parents=True)
        costs.write_text("slow_test 1 0.5\n---\n")
        done = self.run_script("test.sh")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def cache(self, name, *lines):
        folder = self.tree / FOLDERS[name]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "CMakeCache.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
