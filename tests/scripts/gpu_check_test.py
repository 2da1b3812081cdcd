#!/usr/bin/env python3
"""scripts/gpu_check.sh without a GPU: its parts in order, their files, time limits and exit codes.

    python3 tests/scripts/gpu_check_test.py build/dev/bin           what takes seconds
    python3 tests/scripts/gpu_check_test.py build/dev/bin --whole   and what trains to its end: minutes

Stands in for what needs a GPU: nvidia-smi, the tests of kernels, the ceilings and PyTorch are scripts that answer as those
do, and shardwise-run runs plans for an H100 on the CPU, or, where the build has it, as fake_gpu_shardwise_run on fakes of
CUDA and NCCL; gpu_ceilings then too. What a GPU would say of the same cases nothing here shows.
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
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = None
WHOLE = "--whole" in sys.argv
sys.path.insert(0, str(ROOT / "scripts/gpu_check"))
import check  # noqa: E402
import floor  # noqa: E402
import machine  # noqa: E402
import part_faults  # noqa: E402
import part_memory  # noqa: E402
import part_predictions  # noqa: E402
import part_pytorch  # noqa: E402
import part_short  # noqa: E402
import training  # noqa: E402

NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *query-gpu=name*) echo "${FAKE_GPU:-NVIDIA H100 80GB HBM3}" ;;
  *query-gpu=driver_version*) echo 580.95 ;;
  *query-gpu=compute_cap*) echo 9.0 ;;
  *query-gpu=memory.total*) echo "81559 MiB" ;;
  *query-gpu=memory.reserved*) echo "470 MiB" ;;
  *query-gpu=memory.used*) echo 10 ;;
  *) echo 0 ;;
esac
"""
# Products at 600 TFLOP/s and copies at 2.5 TB/s behind a start of 3 us; attention at 400 and 300.
CEILINGS = """#!/bin/sh
if [ "$1" = --gemm-csv ]; then
  awk 'BEGIN {
    print "dtype,m,n,k,latency_ms"
    for (m = 1024; m <= 16384; m *= 2) for (n = 1024; n <= 8192; n *= 2) for (k = 1024; k <= 8192; k *= 2)
      printf "bfloat16,%d,%d,%d,%.9g\\n", m, n, k, 0.003 + 2 * m * n * k / 6e11 }' >"$2"
  awk 'BEGIN {
    print "m,k,latency"
    for (m = 65536; m <= 655360; m += 65536) printf "%d,1024,%.9g\\n", m, 0.003 + 3 * m * 1024 / 2.5e9 }' >"$4"
  awk 'BEGIN {
    print "batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,head_dim_qk,head_dim_vo,attn_mask,data_type,profile_pass,fwd_time_ms,bwd_time_ms"
    for (s = 1024; s <= 16384; s *= 2) for (h = 8; h <= 32; h *= 2) for (d = 64; d <= 128; d *= 2)
      printf "1,%d,%d,%d,%d,%d,%d,top_left,bfloat16,both,%.9g,%.9g\\n", s, s, h, h, d, d,
        0.01 + 2 * h * s * s * d / 4e11, 0.01 + 5 * h * s * s * d / 3e11 }' >"$6"
  echo '{"sustained_tflops_bf16": 590, "products": 80, "moves": 10, "attention": 30}'
  exit
fi
echo '{"schema": "shardwise.gpu_ceilings/1", "gpu": "fake", "moves": [{"move": "copy", "bytes": 4, "gb_per_s": 3000.5}],
 "products": [{"product": "forward", "dtype": "bf16", "tflops": 700.25}, {"product": "forward", "dtype": "fp32", "tflops": 50}],
 "attention": [{"pass": "forward", "head_dim": 64, "tflops": 400}, {"pass": "backward", "head_dim": 64, "tflops": 300}]}'
"""
# A GoogleTest program of two suites. FAKE_FAILS, FAKE_HANGS, FAKE_SKIPS: a suite; FAKE_LOG: suites that ran, a line each.
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
skips = suite == os.environ.get("FAKE_SKIPS")
if skips:
    print("norm_test.cc:12: Skipped\\nno cuDNN here")
test = {"name": "Holds", "result": "SKIPPED" if skips else "COMPLETED", **({"failures": [{"failure": "1 is not 2"}]} if fails else {})}
with open(words["gtest_output"].removeprefix("json:"), "w") as file:
    json.dump({"testsuites": [{"testsuite": [test]}]}, file)
sys.exit(1 if fails else 0)
"""
SANITIZER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
exec "$@"
"""
# Knows no PyTorch's libraries; FAKE_PYTORCH: "crash", or words of the command line that do not fit, as in "--loss whole".
PYTORCH = """#!/bin/sh
if [ "$1" = -c ]; then
  case "$2" in *torch.__version__*) echo 2.15.0; exit ;; esac
  exit 1
fi
echo "$*" >>"$FAKE_LOG.pytorch"
[ "$FAKE_PYTORCH" != crash ] || { echo "CUDA error: an illegal instruction" >&2; exit 1; }
case "$*" in
  *"${FAKE_PYTORCH:-nothing of the kind}"*) echo '{"oom": true, "why": "out of memory"}' ;;
  *) echo '{"oom": false, "step_s": [0.25, 0.5, 0.25], "peak_allocated_bytes": 1000, "profile": {"products_s": 0.125}}' ;;
esac
"""
# On the CPU, with a plan for the GPU: every run must say that it wants one. What the device would say of its memory is added.
SHARDWISE_RUN = """#!/usr/bin/env python3
import json, os, subprocess, sys
words = sys.argv[1:]
with open(os.environ.get("FAKE_LOG", os.devnull) + ".run", "a") as log:
    log.write(" ".join(words) + "\\n")
if words == ["--version"]:
    print("shardwise-run 0.0\\nGPU 0: NVIDIA H100\\nCUDA 13.0, driver for CUDA 13.0\\ncuBLASLt 13.4\\ncuDNN 9.19\\nNCCL 2.28")
    print(os.environ.get("LD_LIBRARY_PATH", ""))
    sys.exit(0)
if "laptop" not in open(words[1]).read():
    at = words.index("--device")  # where there is no GPU, a plan for some trains on the CPU
    del words[at:at + 2]
other_attempt = os.environ.get("SLURM_RESTART_COUNT")
if other_attempt is not None:  # NCCL alone would know
    if os.environ["SLURM_PROCID"] == "0":
        sys.stderr.write("shardwise-run: rank 1 was restarted 0 times and rank 0 1 times\\n")
    sys.exit(3)
code = subprocess.run([{program!r}, *words]).returncode
if code == 0 and "--report" in words and "WORLD_SIZE" not in os.environ:
    path = words[words.index("--report") + 1]
    report = json.load(open(path))
    report["device_used_at_start_bytes"] = 500 << 20
    report["device_used_bytes"] = report["arena_bytes"] + (700 << 20)
    json.dump(report, open(path, "w"))
sys.exit(code)
"""
# On fake GPUs, flags as a GPU's. The fakes are of one process: jobs of several run on the CPU.
FAKE_GPU_RUN = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
several = "WORLD_SIZE" in os.environ or "SLURM_PROCID" in os.environ
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(("processes" if several else "fake") + "\\n")
os.execv({on_cpu!r} if several else {fake!r}, [{fake!r}, *words])
"""


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def whole(test):
    """Of a test that takes minutes."""
    return unittest.skipUnless(WHOLE, "takes minutes: --whole runs it")(test)


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
        (self.bin / "shardwise").symlink_to(BIN / "shardwise")
        write_program(self.bin / "shardwise-run", SHARDWISE_RUN.replace("{program!r}", repr(str(BIN / "shardwise-run"))))
        (self.bin / "libshardwise_cuda.so").touch()

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

    def runs(self, of="run"):
        """Command lines of shardwise-run, or of PyTorch."""
        path = self.scratch / f"log.{of}"
        return path.read_text().splitlines() if path.exists() else []

    def part_of(self, name, *words, gpu=None):
        """A part in this process, of a machine with `gpu`: fields of nvidia-smi."""
        self.out.mkdir(exist_ok=True)
        h100 = {"name": "NVIDIA H100 80GB HBM3", "compute_cap": "9.0", "memory.total": "81559 MiB", "memory.reserved": "470 MiB"}
        check.write_json(self.out / "machine.json", {"gpu": gpu or h100, "commit": "c0ffee", "build": "one"})
        return check.Part(name, ["--out", str(self.out), "--binaries", str(self.bin), *words])

    @whole
    def test_runs_every_part_to_its_end(self):
        done = self.check("--small", "--pytorch", self.tools / "pytorch")
        summary = json.loads((self.out / "summary.json").read_text())
        self.assertTrue(summary["whole"], done.stdout)
        listed = [line.split()[0] for line in self.check("--list").stdout.splitlines()]
        self.assertEqual([row["part"] for row in summary["parts"]], listed)
        self.assertTrue(all(row["right"] + row["known"] > 0 for row in summary["parts"]))
        self.assertEqual(self.part("ceilings")["cases"]["ceilings"]["best_tflops_bf16"], 700.25)
        trains = [line for line in self.runs() if line.startswith("train") and ".json" in line]
        on_gpu = [line for line in trains if "-cpu-" not in line and "/cpu" not in line]
        self.assertTrue(on_gpu)
        self.assertEqual(json.loads((self.out / "all.json").read_text())["files"]["pytorch.json"], self.part("pytorch"))
        # 4 sequences of 64 tokens in a median step of 0.25 s.
        verdict = self.part("pytorch")["cases"]["tiny verdict"]
        self.assertEqual(verdict["tokens_per_s"]["compile"], 1024)
        self.assertEqual(verdict["tokens_per_s"]["fsdp2"], 1024)
        self.assertAlmostEqual(verdict["speed"], verdict["tokens_per_s"]["ours"] / 1024)
        for side in ("ours", verdict["bar"]):
            self.assertAlmostEqual(verdict[side]["floor_over_step"] * verdict[side]["step_s"], verdict[side]["floor"]["step_s"])
            self.assertAlmostEqual(verdict[side]["peak_tflops"], 989.4)
        self.assertEqual(verdict["where_time_went"]["pytorch"]["products_s"], 0.125)  # 1,000 bytes are not undercut
        self.assertGreater(verdict["where_time_went"]["ours"]["parts"]["forward_s"], 0)
        memory = self.part("memory")["cases"]
        self.assertEqual(memory["tiny"]["arena_bytes"], memory["tiny"]["ledger_bytes"])
        # 700 MiB besides the arena, of which nvidia-smi saw 10 before.
        self.assertEqual(memory["constant"]["constant_bytes"], 690 << 20)
        kept = json.loads((self.out / "device_constants.json").read_text())["constants"]
        self.assertEqual(kept, {memory["constant"]["of"]: 690 << 20})
        self.assertIn("cuDNN 9.19", memory["constant"]["of"])
        self.assertEqual(self.part("ceilings")["cases"]["versions"]["NCCL"], "NCCL 2.28")

    def test_a_short_call_tells_first_what_tells_most_and_the_next_goes_on(self):
        sent = self.scratch / "sent"
        words = ["--short", "--small", "--only", "ceilings", "--only", "short", "--pytorch", self.tools / "pytorch", "--deliver", sent]
        done = self.check(*words, code=3)  # other parts are not begun
        part = self.part("short")
        self.assertEqual((part["state"], part["left"]), ("done", []), done.stdout)
        rows = part["cases"]
        self.assertEqual({row["state"] for row in rows.values()} - {"right", "known"}, set(), rows)
        order = list(rows)
        for before, after in (("smoke", "smoke without graph"), ("smoke without graph", "gpu_kernels_test First"),
                              ("gpu_kernels_test Kinds/Second", "gpt2-tiny fp32 losses"), ("2 ranks zero3 processes", "tiny turn 0 ours"),
                              ("tiny turn 0 compile", "tiny turn 1 ours"), ("tiny verdict", "memcheck gpu_kernels_test First")):
            self.assertLess(order.index(before), order.index(after))
        for name in ("smoke", "smoke without graph", "tiny turn 1 ours sparing"):
            self.assertEqual(rows[name]["memory_bytes"], rows[name]["ledger_bytes"])
            self.assertAlmostEqual(rows[name]["error"], rows[name]["predicted_s"] / rows[name]["step_s"] - 1)
        self.assertLess(rows["tiny turn 0 ours sparing"]["memory_bytes"], rows["tiny turn 0 ours"]["memory_bytes"])
        verdict = rows["tiny verdict"]
        self.assertEqual((verdict["bar"], verdict["tokens_per_s"]["compile"]), ("compile", 1024))
        self.assertAlmostEqual(verdict["speed"], verdict["tokens_per_s"][verdict["ours"]] / 1024)
        self.assertEqual(sorted(path.name for path in sent.iterdir()), ["all.json", "log", "smoke.trace.json", "summary.json"])
        self.assertIn("tokens/s", (sent / "log").read_text())
        self.assertIn("tiny verdict", json.loads((sent / "all.json").read_text())["files"]["short.json"]["cases"])
        trained = len(self.runs())
        self.check(*words, code=3)
        self.assertEqual([line for line in self.runs()[trained:] if line.startswith("train")], [])

    def test_what_was_measured_is_sent_however_a_call_ends(self):
        sent = self.scratch / "sent"
        self.check("--only", "kernels", "--deliver", sent, code=1, FAKE_FAILS="First")
        self.assertEqual(sorted(path.name for path in sent.iterdir()), ["all.json", "log", "summary.json"])
        self.assertIn("wrong    gpu_kernels_test First: 1 is not 2", (sent / "log").read_text())
        refused = self.check("--only", "kernels", "--deliver", self.out, code=2)
        self.assertIn("a folder other than", refused.stderr)
        self.assertEqual(len(refused.stderr.splitlines()), 1)

    def test_every_row_of_a_short_call_can_be_planned_on_an_h100(self):
        part = self.part_of("short")
        for key, micro in part_short.MICRO.items():
            one = (part_pytorch.SMALL if key == "tiny" else part_pytorch.MODELS)[key]
            path = training.plan(part, "p", one["model"], sequence=one["sequence"], batch=one["batch"], dp_shard=1,
                                 micro_batch_size=micro, recompute="none")
            peaks = []
            for sparing in (False, True):
                if sparing:
                    part_short.spare(path)
                part.must(BIN / "shardwise", "simulate", path, "-o", part.work / "said.json")
                peaks.append(max(stage["peak_allocated_bytes"] for stage in check.read_json(part.work / "said.json")["memory"]))
            self.assertLess(peaks[1], peaks[0], key)

    def test_resumes_where_the_first_call_stopped(self):
        self.check("--only", "kernels", code=1, FAKE_FAILS="First")  # other parts are not begun: 1, not 3
        self.assertEqual(self.log(), ["First", "Kinds/Second"])
        self.check("--only", "kernels", code=1)  # a wrong result is a result
        self.assertEqual(self.log(), ["First", "Kinds/Second"])
        self.check("--only", "kernels", "--wrong-again", code=3)
        self.assertEqual(self.log(), ["First", "Kinds/Second", "First"])
        self.check("--only", "kernels", "--again", code=3)
        self.assertEqual(self.log(), ["First", "Kinds/Second", "First", "First", "Kinds/Second"])

    def test_results_of_other_programs_run_again_and_rows_say_of_which_they_are(self):
        self.check("--only", "kernels", code=1, FAKE_FAILS="First")
        before = self.part("kernels")["cases"]["gpu_kernels_test First"]
        write_program(self.bin / "gpu_kernels_test", KERNELS + "# mended\n")
        self.check("--only", "kernels", code=3)
        self.assertEqual(self.log(), ["First", "Kinds/Second"] * 2)
        after = self.part("kernels")["cases"]["gpu_kernels_test First"]
        self.assertEqual((before["state"], after["state"]), ("wrong", "right"))
        self.assertNotEqual(before["build"], after["build"])
        self.assertEqual(after["commit"], json.loads((self.out / "machine.json").read_text())["commit"])

    def test_one_file_is_enough_to_resume_from(self):
        self.check("--only", "kernels", code=3)
        kept = (self.out / "all.json").read_text()
        shutil.rmtree(self.out)
        self.out.mkdir()
        (self.out / "all.json").write_text(kept)
        self.check("--only", "kernels", code=3)
        self.assertEqual(self.log(), ["First", "Kinds/Second"])
        self.assertEqual(self.part("kernels")["state"], "done")

    def test_suites_of_which_every_test_skipped_are_lacking(self):
        self.check("--only", "kernels", code=3, FAKE_SKIPS="First")
        row = self.part("kernels")["cases"]["gpu_kernels_test First"]
        self.assertEqual((row["state"], row["why"]), ("lacking", "every test was skipped: no cuDNN here"))

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
                            (["--fast"], "unknown flag --fast"), (["--gpu", "x"], "--gpu x is not the number"), (["more"], "one folder"),
                            (["--pytorch", "/no/python"], "--pytorch /no/python: no such program")):
            done = self.check(*words, code=2)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(said, done.stderr)

    def test_names_what_is_missing(self):
        (self.bin / "shardwise-run").unlink()
        self.assertIn("has no shardwise-run", self.check("--only", "kernels", code=3).stderr)
        write_program(self.bin / "shardwise-run", "#!/bin/sh\necho 'libfmt.so.9: cannot open shared object file' >&2\nexit 127\n")
        self.assertIn("shardwise-run does not start: libfmt.so.9: cannot open", self.check("--only", "kernels", code=3).stderr)
        write_program(self.bin / "shardwise-run", "#!/bin/sh\necho shardwise-run 1\necho 'GPUs cannot be used: the driver is old'\n")
        self.assertIn("shardwise-run: GPUs cannot be used: the driver is old", self.check("--only", "kernels", code=3).stderr)
        self.assertFalse((self.out / "kernels.json").exists())
        (self.bin / "libshardwise_cuda.so").unlink()
        self.assertIn("no libshardwise_cuda.so in ", self.check("--only", "kernels", code=3).stderr)
        write_program(self.tools / "nvidia-smi", "#!/bin/sh\necho 'No devices were found'\nexit 6\n")
        self.assertIn("no GPU 0: No devices were found", self.check("--only", "kernels", code=3).stderr)

    def test_refuses_a_folder_of_another_gpu(self):
        self.check("--only", "ceilings", code=3)
        other = self.check("--only", "ceilings", code=2, FAKE_GPU="NVIDIA Other")
        self.assertIn("has results of NVIDIA H100 80GB HBM3, this is NVIDIA Other (name): name another folder", other.stderr)

    def test_the_commit_is_gits_or_a_copys_and_unknown_where_neither_says_it(self):
        with mock.patch.object(machine.subprocess, "run", side_effect=FileNotFoundError("git")):
            self.assertIsNone(machine.commit())
            with mock.patch.object(check, "ROOT", self.scratch):
                (self.scratch / "COMMIT").write_text("c0ffee\n")
                self.assertEqual(machine.commit(), "c0ffee")

    def test_predictions_are_made_with_curves_of_this_gpu(self):
        self.check("--only", "ceilings", code=3)
        part = check.Part("predictions", ["--out", str(self.out), "--binaries", str(self.bin)])
        row = part_predictions.calibrate(part)
        self.assertEqual(row["sustained_tflops_bf16"], 590)
        cluster = json.loads((self.out / "calibrated.json").read_text())
        curve = next(each for each in cluster["gpu"]["gemm"] if each["dtype"] == "bf16")
        self.assertEqual(curve["fit"]["points"], 80)
        self.assertLess(curve["fit"]["median_error"], 0.05)
        self.assertEqual(cluster["gpu"]["memory_bound"]["fit"]["points"], 10)
        self.assertTrue(all(cluster["gpu"][f"attention_{each}"]["fit"]["measured"] for each in ("forward", "backward")))
        plan = [BIN / "shardwise", "estimate", "--model", "gpt2", "--gpus", "1", "--json", "--sequence-length", "1024"]
        times = []
        for each in ("dgx-h100", self.out / "calibrated.json"):
            done = subprocess.run([*plan, "--cluster", each], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            times.append(json.loads(done.stdout)["step_time_s"])
        self.assertNotEqual(*times)

    def test_a_missing_pytorch_is_lacking_and_runs_once_it_is_there(self):
        write_program(self.tools / "without", "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
        self.check("--small", "--only", "pytorch", "--pytorch", self.tools / "without", code=3)
        self.assertEqual(self.part("pytorch")["cases"]["tiny compile 2"]["state"], "lacking")
        self.check("--small", "--only", "pytorch", "--pytorch", self.tools / "pytorch", code=3)
        self.assertEqual(self.part("pytorch")["cases"]["tiny compile 2"]["state"], "known")

    def test_a_crash_of_pytorch_is_not_ours_and_runs_again(self):
        self.check("--small", "--only", "pytorch", "--pytorch", self.tools / "pytorch", code=3, FAKE_PYTORCH="crash")
        rows = self.part("pytorch")["cases"]
        self.assertEqual({row["state"] for row in rows.values()}, {"known", "lacking"})
        self.assertIn("an illegal instruction", rows["tiny compile 4"]["why"])
        self.assertIn("no figures of PyTorch", rows["tiny verdict"]["why"])
        again = check.Part("pytorch", ["--out", str(self.out), "--binaries", str(self.bin), "--small"])
        self.assertIn("tiny ours 4", again.cases)
        self.assertNotIn("tiny compile 4", again.cases)

    def test_pytorch_is_asked_for_what_may_be_its_best(self):
        self.check("--small", "--only", "pytorch", "--pytorch", self.tools / "pytorch", code=3,
                   FAKE_PYTORCH="--micro-batch-size 4 --micro-batches 1 --sharding fsdp2 --recompute none --loss whole")
        rows = self.part("pytorch")["cases"]
        self.assertTrue(rows["tiny fsdp2 4"]["oom"])
        self.assertIn("tokens_per_s", rows["tiny fsdp2 4 recompute"])  # where it needs it to fit, and there alone
        self.assertIn("only adds work", rows["tiny fsdp2 4 recompute chunked"]["not_tried"])
        self.assertIn("tokens_per_s", rows["tiny fsdp2 4 chunked"])
        self.assertIn("--keep-gathered", " ".join(self.runs("pytorch")))
        self.assertIn("tokens_per_s", rows["tiny fsdp2 4 recompute keep gathered"])  # the first of equals
        self.assertIn("max-autotune", "".join(rows))

    def test_no_target_of_an_h100_holds_for_other_gpus(self):
        one = {**part_pytorch.MODELS["124m"], "speed": (1, 1)}
        for name, ok in (("NVIDIA H100 80GB HBM3", False), ("NVIDIA H100 PCIe", None), ("NVIDIA H100 NVL", None)):
            part = self.part_of("pytorch", gpu={"name": name})
            searches = {each: part_pytorch.Search(part, "124m", one, each) for each in ("ours", *part_pytorch.PYTORCH)}
            for contender, rate in (("ours", 90), ("compile", 100)):
                part.cases[f"124m turn 0 {contender}"] = {"tokens_per_s": rate}
            row = part_pytorch.verdict(part, "124m", one, searches)
            self.assertEqual((row["ok"], row["bar"], row["speed"]), (ok, "compile", 0.9))

    def test_every_real_row_can_be_planned_on_an_h100(self):
        part = self.part_of("predictions")
        for name, model, sequence, micro, recompute in part_predictions.CONFIGURATIONS:
            training.plan(part, "p", model, sequence=sequence, batch=micro, dp_shard=1, micro_batch_size=micro, recompute=recompute)
        for name, model, sequence, micro, locks in part_memory.CONFIGURATIONS:
            training.plan(part, "p", model, sequence=sequence, batch=micro, dp_shard=1, micro_batch_size=micro, **locks)
        for key, one in part_pytorch.MODELS.items():
            fits = set()
            for settings in part_pytorch.plain(one, "ours"):
                try:
                    training.plan(part, "p", one["model"], sequence=one["sequence"], batch=one["batch"], dp_shard=1,
                                  micro_batch_size=settings.micro, recompute=settings.recompute)
                    fits.add(settings.recompute)
                except check.DoesNotFit:
                    pass
            self.assertIn("full", fits, key)
            self.assertEqual(one["batch"] % max(one["micro"]), 0, key)

    def test_gpus_that_the_catalogue_lacks_are_planned_for_by_their_capability_and_memory(self):
        for name, capability, mib, architecture in (("NVIDIA L4", "8.9", 23034, "ada"), ("NVIDIA RTX A6000", "8.6", 49140, "ampere"),
                                                    ("NVIDIA GeForce RTX 5090", "12.0", 32607, "blackwell-rtx"),
                                                    ("NVIDIA A30", "8.0", 24576, "ampere"), ("NVIDIA H100 64GB HBM2", "9.0", 65247, "hopper")):
            gpu = {"name": name, "compute_cap": capability, "memory.total": f"{mib} MiB", "memory.reserved": "300 MiB"}
            part = self.part_of("numbers", gpu=gpu)
            made = check.read_json(training.plan(part, "p", "gpt2-tiny", dp_shard=1))["cluster"]["gpu"]
            self.assertEqual((made["label"], made["architecture"]), (name, architecture))
            self.assertEqual(made["hbm_bytes"], (mib - 300) << 20)
        part = self.part_of("numbers", gpu={"name": "Tesla V100-SXM2-32GB", "compute_cap": "7.0", "memory.total": "32768 MiB"})
        with self.assertRaisesRegex(check.Lacking, "no kernels for Tesla V100-SXM2-32GB, compute capability 7.0"):
            training.plan(part, "p", "gpt2-tiny", dp_shard=1)

    def test_what_does_not_fit_is_neither_wrong_nor_lacking(self):
        part = self.part_of("memory", gpu={"name": "NVIDIA L4", "compute_cap": "8.9", "memory.total": "23034 MiB"})
        row = part.case("3b", training.plan, part, "p", "llama-3.2-3b", 1, "cuda", "bf16", 8192, 1)
        self.assertEqual((row["state"], row["fits"]), ("known", False))

    def test_peaks_of_a_gpu_that_the_catalogue_lacks_are_what_was_measured(self):
        part = self.part_of("numbers", gpu={"name": "NVIDIA L4", "compute_cap": "8.9", "memory.total": "23034 MiB"})
        row = {"best_tflops_bf16": 58.5, "best_tflops_fp32": 14.5, "best_copy_gb_per_s": 250.5}
        check.write_json(self.out / "ceilings.json", {"cases": {"ceilings": row}})
        gpu = check.read_json(training.plan(part, "p", "gpt2-tiny", dp_shard=1))["cluster"]["gpu"]
        self.assertEqual((gpu["peak_tflops"]["bf16"], gpu["memory_bandwidth_gb_per_s"]), (58.5, 250.5))

    def test_the_floor_is_the_sum_of_all_operations_at_their_ceilings(self):
        part = self.part_of("pytorch")
        row = {"best_tflops_bf16": 700, "best_copy_gb_per_s": 3000, "attention_forward_64_tflops": 400, "attention_backward_64_tflops": 300}
        check.write_json(self.out / "ceilings.json", {"cases": {"ceilings": row}})
        one = {"model": "gpt2", "sequence": 1024, "batch": 16}
        made = floor.figures(part, one, 16, "none", 0.1)
        least = made["floor"]
        self.assertAlmostEqual(sum(least[key] for key in ("gemm_s", "attention_s", "memory_bound_s", "optimizer_s")), least["step_s"])
        # 6 FLOPs a token and parameter in products, those of positions and norms left out; at 700 TFLOP/s.
        products = 6 * 16 * 1024 * (12 * 12 * 768 * 768 + 50257 * 768)
        self.assertAlmostEqual(least["gemm_s"] / (products / 700e12), 1, delta=0.02)
        # 12 layers of 16 x 12 heads of 64: half of 1024 x 1024 pairs, and half a tile of 128 a query at the mask's edge.
        pairs = 12 * 16 * 12 * (1024 * 1024 / 2 + 1024 * 64) * 4 * 64
        self.assertAlmostEqual(least["attention_s"] / (pairs / 400e12 + 2.5 * pairs / 300e12), 1, delta=0.05)
        self.assertAlmostEqual(made["mfu"], made["model_flops"] / 0.1 / 989.4e12)
        row["best_copy_gb_per_s"] = 1500
        check.write_json(self.out / "ceilings.json", {"cases": {"ceilings": row}})
        self.assertAlmostEqual(floor.figures(part, one, 16, "none", 0.1)["floor"]["memory_bound_s"], 2 * least["memory_bound_s"])

    def test_a_job_cut_by_its_parts_time_is_not_wrong(self):
        write_program(self.bin / "shardwise-run", "#!/bin/sh\nsleep 60\n")
        part = self.part_of("numbers", "--seconds", "2")
        with self.assertRaises(check.OutOfTime):
            training.train_processes(part, "cut", "plan.json", 2)

    def test_a_failed_job_has_one_message_whatever_explains_it(self):
        one = "plan.json:1:2: /layout: does not fit\n    use less\n1 problem, nothing was run\n"
        self.assertEqual(part_faults.messages(one), ["plan.json:1:2: /layout: does not fit"])
        part = self.part_of("faults", "--small")
        for said, ok in (("a", True), ("a\nb", False), ("", False)):
            running = [check.Running(["sh", "-c", f"printf '{said}' >&2; exit 3"])]
            self.assertEqual(part_faults.ended(part, running, [0], (3,))["ok"], ok, said)

    def test_a_host_without_an_address_of_its_own_lacks_nothing(self):
        part = self.part_of("faults", "--small")
        with mock.patch.object(part_faults, "own_address", return_value=None):
            self.assertEqual(part.case("ports", part_faults.port_taken, part)["state"], "known")

    def test_libraries_of_pytorchs_python_are_those_of_all_parts(self):
        for name in ("cudnn", "cu13"):
            (self.scratch / "site" / "nvidia" / name / "lib").mkdir(parents=True)
        self.check("--only", "kernels", "--pytorch", sys.executable, code=3, PYTHONPATH=str(self.scratch / "site"))
        said = json.loads((self.out / "machine.json").read_text())["versions"]
        folders = [str(self.scratch / "site" / "nvidia" / name / "lib") for name in ("cu13", "cudnn")]
        self.assertIn(":".join(folders), said[-1])

    @whole
    def test_the_parts_that_train_do_so_on_fake_gpus(self):
        fake = BIN / "fake_gpu_shardwise_run"
        if not fake.exists():
            self.skipTest("this build has no fakes of CUDA and NCCL")
        on_cpu = self.bin / "on-cpu"
        (self.bin / "shardwise-run").rename(on_cpu)
        write_program(self.bin / "shardwise-run", FAKE_GPU_RUN.format(fake=str(fake), on_cpu=str(on_cpu)))
        if (BIN / "fake_gpu_ceilings").exists():
            (self.bin / "gpu_ceilings").unlink()
            (self.bin / "gpu_ceilings").symlink_to(BIN / "fake_gpu_ceilings")
        parts = ("ceilings", "numbers", "memory", "checkpoints", "predictions", "faults")
        self.check("--small", *(word for part in parts for word in ("--only", part)), code=3)  # other parts are not begun
        for part in parts:
            rows = self.part(part)["cases"]
            self.assertEqual(self.part(part)["left"], [])
            self.assertEqual({name: row.get("why") for name, row in rows.items() if row["state"] not in ("right", "known")}, {})
        self.assertGreater(self.log().count("fake"), 2 * self.log().count("processes"))


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    sys.argv = [word for word in sys.argv if word != "--whole"]
    unittest.main(verbosity=2)
