#!/usr/bin/env python3
"""scripts/gpu_check.sh without a GPU: its parts in order, their files, time limits and exit codes.

    python3 tests/scripts/gpu_check_test.py build/dev/bin

Stands in for what needs a GPU: nvidia-smi, the tests of kernels, the ceilings and PyTorch are scripts that answer as those
do, and shardwise-run runs on the CPU, or, where the build has it, as fake_gpu_shardwise_run on fakes of CUDA and NCCL. What a
GPU would say of the same cases nothing here shows.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = None

NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *query-gpu=name*) echo "${FAKE_GPU:-NVIDIA Fake H100}" ;;
  *query-gpu=driver_version*) echo 580.95 ;;
  *query-gpu=memory.total*) echo "81559 MiB" ;;
  *query-gpu=memory.used*) echo 10 ;;
  *) echo 0 ;;
esac
"""
# Products at 600 TFLOP/s and copies at 2.5 TB/s behind a start of 3 us.
CEILINGS = """#!/bin/sh
if [ "$1" = --gemm-csv ]; then
  awk 'BEGIN {
    print "dtype,m,n,k,latency_ms"
    for (m = 1024; m <= 16384; m *= 2) for (n = 1024; n <= 8192; n *= 2) for (k = 1024; k <= 8192; k *= 2)
      printf "bfloat16,%d,%d,%d,%.9g\\n", m, n, k, 0.003 + 2 * m * n * k / 6e11 }' >"$2"
  awk 'BEGIN {
    print "m,k,latency"
    for (m = 65536; m <= 655360; m += 65536) printf "%d,1024,%.9g\\n", m, 0.003 + 3 * m * 1024 / 2.5e9 }' >"$4"
  echo '{"sustained_tflops_bf16": 590, "products": 80, "moves": 10}'
  exit
fi
echo '{"schema": "shardwise.gpu_ceilings/1", "gpu": "fake", "moves": [{"move": "copy", "bytes": 4, "gb_per_s": 3000.5}],
 "products": [{"product": "forward", "dtype": "bf16", "tflops": 700.25}]}'
"""
# A GoogleTest program of two suites. FAKE_FAILS, FAKE_HANGS: a suite; FAKE_LOG: suites that ran, a line each.
KERNELS = """#!/usr/bin/env python3
import json, os, sys, time
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
if "--gtest_list_tests" in sys.argv:
    print("Running main() from fake\\nFirst.\\n  Holds\\nKinds/Second.\\n  Holds/0")
    sys.exit(0)
suite = words["gtest_filter"].removesuffix(".*")
with open(os.environ.get("FAKE_LOG", os.devnull), "a") as log:
    log.write(suite + "\\n")
if suite == os.environ.get("FAKE_HANGS"):
    time.sleep(600)
fails = suite == os.environ.get("FAKE_FAILS")
test = {"name": "Holds", "result": "COMPLETED", **({"failures": [{"failure": "1 is not 2"}]} if fails else {})}
with open(words["gtest_output"].removeprefix("json:"), "w") as file:
    json.dump({"testsuites": [{"testsuite": [test]}]}, file)
sys.exit(1 if fails else 0)
"""
SANITIZER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
exec "$@"
"""
PYTORCH = """#!/bin/sh
echo '{"oom": false, "step_s": [0.25, 0.5, 0.25], "peak_allocated_bytes": 1000000000}'
"""
SHARDWISE = """#!/usr/bin/env python3
import os, sys
words = ["laptop" if word == "dgx-h100" else word for word in sys.argv[1:]]
os.execv({program!r}, [{program!r}, *words])
"""
SHARDWISE_RUN = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
if "--device" in words:
    del words[words.index("--device"):words.index("--device") + 2]
words = [word for word in words if word not in ("--share-gpu", "--no-graph")]
os.execv({program!r}, [{program!r}, *words])
"""
# On fake GPUs, plans and flags as a GPU's. The fakes are of one process: jobs of several run on the CPU.
FAKE_GPU_RUN = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
program = {fake!r}
if "WORLD_SIZE" in os.environ:
    program = {program!r}
    if "--device" in words:
        words[words.index("--device") + 1] = "cpu"
    words = [word for word in words if word not in ("--share-gpu", "--no-graph")]
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(("processes" if "WORLD_SIZE" in os.environ else "fake") + "\\n")
os.execv(program, [program, *words])
"""


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)
        self.out, self.tools, self.bin = (self.scratch / name for name in ("out", "tools", "bin"))
        self.tools.mkdir()
        self.bin.mkdir()
        write_program(self.tools / "nvidia-smi", NVIDIA_SMI)
        write_program(self.tools / "compute-sanitizer", SANITIZER)
        write_program(self.tools / "pytorch", PYTORCH)
        write_program(self.bin / "gpu_ceilings", CEILINGS)
        write_program(self.bin / "gpu_kernels_test", KERNELS)
        for name, text in (("shardwise", SHARDWISE), ("shardwise-run", SHARDWISE_RUN)):
            write_program(self.bin / name, text.format(program=str(BIN / name)))

    def environment(self, **more):
        return {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", "FAKE_LOG": str(self.scratch / "log"), **more}

    def check(self, *words, code=0, **environment):
        done = subprocess.run([ROOT / "scripts/gpu_check.sh", self.out, "--binaries", self.bin, *words], text=True,
                              env=self.environment(**environment), capture_output=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def part(self, name):
        return json.loads((self.out / f"{name}.json").read_text())

    def log(self):
        path = self.scratch / "log"
        return path.read_text().split() if path.exists() else []

    def test_runs_every_part_to_its_end(self):
        done = self.check("--small", "--pytorch", self.tools / "pytorch")
        summary = json.loads((self.out / "summary.json").read_text())
        self.assertTrue(summary["whole"], done.stdout)
        listed = [line.split()[0] for line in self.check("--list").stdout.splitlines()]
        self.assertEqual([row["part"] for row in summary["parts"]], listed)
        self.assertTrue(all(row["right"] + row["known"] > 0 for row in summary["parts"]))
        self.assertEqual(self.part("ceilings")["cases"]["ceilings"]["best_tflops_bf16"], 700.25)
        # 4 sequences of 64 tokens in a median step of 0.25 s.
        verdict = self.part("pytorch")["cases"]["tiny verdict"]
        self.assertEqual(verdict["tokens_per_s"]["compile"], 1024)
        self.assertEqual(verdict["tokens_per_s"]["fsdp2"], 1024)
        self.assertAlmostEqual(verdict["speed"], verdict["tokens_per_s"]["ours"] / 1024)

    def test_resumes_where_the_first_call_stopped(self):
        self.check("--only", "kernels", code=1, FAKE_FAILS="First")  # other parts are not begun: 1, not 3
        self.assertEqual(self.log(), ["First", "Kinds/Second"])
        self.check("--only", "kernels", code=1)  # a wrong result is a result
        self.assertEqual(self.log(), ["First", "Kinds/Second"])
        self.check("--only", "kernels", "--again", code=3)
        self.assertEqual(self.log(), ["First", "Kinds/Second"] * 2)

    def test_goes_on_behind_a_part_that_is_wrong(self):
        self.check("--only", "ceilings", "--only", "kernels", "--only", "sanitizers", code=1, FAKE_FAILS="Kinds/Second")
        self.assertEqual(self.part("kernels")["cases"]["gpu_kernels_test Kinds/Second"]["why"], "1 is not 2")
        self.assertEqual(self.part("kernels")["cases"]["gpu_kernels_test First"]["state"], "right")
        states = {name: row["state"] for name, row in self.part("sanitizers")["cases"].items()}
        self.assertEqual(states["racecheck gpu_kernels_test First"], "right")
        self.assertEqual(states["racecheck gpu_kernels_test Kinds/Second"], "wrong")

    def run_part(self, name, seconds, **environment):
        self.out.mkdir(exist_ok=True)
        return subprocess.Popen([sys.executable, ROOT / f"scripts/gpu_check/part_{name}.py", "--out", self.out, "--binaries", self.bin,
                                 "--seconds", str(seconds)], env=self.environment(**environment), stdout=subprocess.DEVNULL)

    def test_a_part_ends_with_its_time_and_the_next_call_has_what_is_left(self):
        part = self.run_part("kernels", 2, FAKE_HANGS="Kinds/Second")
        self.assertEqual(part.wait(30), 3)
        self.assertEqual((self.part("kernels")["state"], self.part("kernels")["left"]), ("cut", ["gpu_kernels_test Kinds/Second"]))
        self.assertEqual(self.run_part("kernels", 30).wait(40), 0)
        self.assertEqual((self.part("kernels")["state"], self.part("kernels")["left"]), ("done", []))
        self.assertEqual(self.log(), ["First", "Kinds/Second", "Kinds/Second"])

    def test_a_part_that_is_ended_leaves_its_rows_and_no_process(self):
        part = self.run_part("kernels", 60, FAKE_HANGS="Kinds/Second")
        for _ in range(600):
            if len(self.log()) == 2:
                break
            time.sleep(0.05)
        part.send_signal(signal.SIGTERM)
        self.assertEqual(part.wait(30), 124)
        self.assertEqual(self.part("kernels")["state"], "cut")
        self.assertEqual(self.part("kernels")["cases"]["gpu_kernels_test First"]["state"], "right")
        left = subprocess.run(["pgrep", "-f", str(self.bin)], capture_output=True, text=True).stdout
        self.assertEqual(left, "")

    def test_refuses_bad_use_in_one_line(self):
        for words, said in ((["--minutes", "0"], "--minutes 0 is not a whole number of minutes"), (["--only", "speed"], "--only speed"),
                            (["--fast"], "unknown flag --fast"), (["--gpu", "x"], "--gpu x is not the number"), (["more"], "one folder")):
            done = self.check(*words, code=2)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(said, done.stderr)

    def test_names_what_is_missing(self):
        (self.bin / "shardwise-run").unlink()
        self.assertIn("has no shardwise-run", self.check("--only", "kernels", code=3).stderr)
        write_program(self.tools / "nvidia-smi", "#!/bin/sh\necho 'No devices were found'\nexit 6\n")
        self.assertIn("no GPU 0: No devices were found", self.check("--only", "kernels", code=3).stderr)

    def test_refuses_a_folder_of_another_gpu(self):
        self.check("--only", "ceilings", code=3)
        other = self.check("--only", "ceilings", code=2, FAKE_GPU="NVIDIA Other")
        self.assertIn("has results of NVIDIA Fake H100, this is NVIDIA Other (name): name another folder", other.stderr)

    def test_predictions_are_made_with_curves_of_this_gpu(self):
        self.check("--only", "ceilings", code=3)
        sys.path.insert(0, str(ROOT / "scripts/gpu_check"))
        import check
        import part_predictions
        part = check.Part("predictions", ["--out", str(self.out), "--binaries", str(self.bin)])
        row = part_predictions.calibrate(part)
        self.assertEqual(row["sustained_tflops_bf16"], 590)
        cluster = json.loads((self.out / "calibrated.json").read_text())
        curve = next(each for each in cluster["gpu"]["gemm"] if each["dtype"] == "bf16")
        self.assertEqual(curve["fit"]["points"], 80)
        self.assertLess(curve["fit"]["median_error"], 0.05)
        self.assertEqual(cluster["gpu"]["memory_bound"]["fit"]["points"], 10)
        plan = [BIN / "shardwise", "estimate", "--model", "gpt2", "--gpus", "1", "--json", "--sequence-length", "1024"]
        times = []
        for each in ("dgx-h100", self.out / "calibrated.json"):
            done = subprocess.run([*plan, "--cluster", each], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            times.append(json.loads(done.stdout)["step_time_s"])
        self.assertNotEqual(*times)

    def test_a_missing_pytorch_is_lacking_and_runs_once_it_is_there(self):
        self.check("--small", "--only", "pytorch", "--pytorch", "/bin/false", code=1)
        write_program(self.tools / "without", "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
        self.check("--small", "--only", "pytorch", "--again", "--pytorch", self.tools / "without", code=3)
        self.assertEqual(self.part("pytorch")["cases"]["tiny compile 2"]["state"], "lacking")
        self.check("--small", "--only", "pytorch", "--pytorch", self.tools / "pytorch", code=3)
        self.assertEqual(self.part("pytorch")["cases"]["tiny compile 2"]["state"], "known")

    def test_the_parts_that_train_do_so_on_fake_gpus(self):
        fake = BIN / "fake_gpu_shardwise_run"
        if not fake.exists():
            self.skipTest("this build has no fakes of CUDA and NCCL")
        (self.bin / "shardwise").unlink()
        (self.bin / "shardwise").symlink_to(BIN / "shardwise")
        write_program(self.bin / "shardwise-run", FAKE_GPU_RUN.format(fake=str(fake), program=str(BIN / "shardwise-run")))
        parts = ("ceilings", "numbers", "memory", "checkpoints", "predictions", "faults")
        self.check("--small", *(word for part in parts for word in ("--only", part)), code=3)  # other parts are not begun
        for part in parts:
            rows = self.part(part)["cases"]
            self.assertEqual(self.part(part)["left"], [])
            self.assertEqual({name: row.get("why") for name, row in rows.items() if row["state"] not in ("right", "known")}, {})
        self.assertGreater(self.log().count("fake"), 2 * self.log().count("processes"))


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
