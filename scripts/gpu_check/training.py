"""Plans and runs of Shardwise for the parts of scripts/gpu_check.sh, and what they say of themselves."""
import array
import json
import os
import random
import struct

import check


class DoesNotFit(check.Lacking):
    """A plan that needs more memory than this GPU has."""


# The catalogue's cluster of a GPU, by words of nvidia-smi's name.
CLUSTERS = (("GH200", "alps-gh200"), ("GB200", "gb200-nvl72"), ("GB300", "gb300-nvl72"), ("B200", "dgx-b200"), ("B300", "dgx-b300"),
            ("H200", "dgx-h200"), ("H100 PCIe", "h100-pcie"), ("H100 NVL", "h100-nvl"), ("H100", "dgx-h100"),
            ("H20", "h20-ib"), ("A100-PCIE", "a100-pcie"), ("A100 80GB PCIe", "a100-pcie"), ("A100-SXM4-40GB", "aws-p4d"),
            ("A100", "dgx-a100"), ("L40S", "l40s-pcie"), ("A10G", "aws-g5"), ("RTX 4090", "rtx-4090-x8"))


def cluster(part):
    """The catalogue's of this GPU; of one that the catalogue lacks, H100's."""
    name = check.read_json(part.options.out / "machine.json")["gpu"].get("name", "")
    return next((found for words, found in CLUSTERS if words in name), "dgx-h100")


def plan(part, name, model, gpus=1, device="cuda", precision="bf16", sequence=128, batch=4, engine="shardwise", of=None, words=(), **locks):
    """Writes part.work/NAME.json: a plan for `gpus` of this GPU (as the cluster `of` has it), or of the CPU, with `locks`."""
    path = part.work / f"{name}.json"
    fixed = [word for key, value in locks.items() for word in ("--lock", f"{key}={value}")]
    kernels = ["--kernels", "planned"] if engine != "shardwise" else []
    done = part.run(part.program("shardwise"), "plan", "--model", model, "--cluster", (of or cluster(part)) if device == "cuda" else "laptop",
              "--gpus", gpus, "--engine", engine, *kernels, "--precision", precision, "--loss", "chunked",
              "--sequence-length", sequence, "--global-batch-size", batch, *fixed, *words, "-o", path, limit=120)
    if done.code == 1:
        raise DoesNotFit(check.tail(done.err or done.out, 3))
    if done.code != 0:
        raise check.Wrong(f"shardwise plan: {done.why()}")
    return path


class Run:
    """What a training wrote: `steps` as --metrics has them, `report` or None, `said` on its standard output."""

    def __init__(self, done, metrics, report):
        self.said, self.seconds = done.out, done.seconds
        lines = [json.loads(line) for line in metrics.read_text().splitlines()[1:]]
        self.steps = lines
        self.losses = [line["loss"] for line in lines]
        self.norms = [line["gradient_norm"] for line in lines]
        self.times = [line["step_time_s"] for line in lines]
        self.report = check.read_json(report) if report.exists() else None


def words_of(device):
    return ["--device", "cuda"] if device == "cuda" else []


def train(part, name, plan_path, device="cuda", steps=5, words=(), limit=300):
    """One process, as many ranks as the plan has. Raises Wrong where it does not end with 0."""
    metrics, report = part.work / f"{name}.jsonl", part.work / f"{name}.report.json"
    for path in (metrics, report):
        path.unlink(missing_ok=True)
    done = part.run(part.program("shardwise-run"), "train", plan_path, "--steps", steps, "--metrics", metrics, "--report", report,
                    *words_of(device), *words, limit=limit)
    if done.code != 0 and (" are free" in done.err or "out of memory" in done.err):
        raise DoesNotFit(check.tail(done.err, 3))
    if done.code != 0:
        raise check.Wrong(f"shardwise-run: {done.why()}")
    return Run(done, metrics, report)


def process(part, rank, ranks, plan_path, words, port, env=None):
    """Starts one rank, as torchrun would."""
    variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return part.start(part.program("shardwise-run"), "train", plan_path, "--device", "cuda", "--share-gpu", *words,
                      env={**variables, **(env or {})})


def processes(part, ranks, plans, words=(), port=None, env=None):
    """Starts a process a rank; plans[r] is rank r's. Returns them, rank 0's first."""
    port = port or random.randrange(21000, 31000, 16)
    return [process(part, rank, ranks, plans[rank], words, port, env) for rank in range(ranks)]


def train_processes(part, name, plan_path, ranks, steps=5, words=(), limit=300):
    metrics, report = part.work / f"{name}.jsonl", part.work / f"{name}.report.json"
    for path in (metrics, report):
        path.unlink(missing_ok=True)
    running = processes(part, ranks, [plan_path] * ranks, ["--steps", steps, "--metrics", metrics, "--report", report, *words])
    ended = [each.wait(max(1, min(limit, part.left()))) for each in running]
    for rank, done in enumerate(ended):
        if done.timed_out or done.code != 0:
            raise check.Wrong(f"rank {rank}: {done.why()}")
    return Run(ended[0], metrics, report)


def largest_difference(values, expected):
    """Of two curves: |a - b| / |b| at its largest. Infinite where a number is not finite or missing."""
    if len(values) != len(expected):
        return float("inf")
    worst = max((abs(a - b) / max(abs(b), 1e-30) for a, b in zip(values, expected)), default=float("inf"))
    return worst if worst == worst else float("inf")


def tensors(folder):
    """Of all safetensors files of a folder: name -> array of floats. F32 alone."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as file:
            size, = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                if entry["dtype"] != "F32":
                    raise check.Wrong(f"{path.name}: {name} is {entry['dtype']}, not F32")
                file.seek(8 + size + begin)
                values = array.array("f")
                values.frombytes(file.read(end - begin))
                found.setdefault(name, array.array("f")).extend(values)
    return found


def relative_distance(a, b):
    """|a - b| / |b| over all tensors together, and the worst tensor's (of those with a thousandth of the whole norm)."""
    if a.keys() != b.keys():
        raise check.Wrong(f"tensors differ: {sorted(a.keys() ^ b.keys())[:3]}")
    squares = {name: (sum((x - y) ** 2 for x, y in zip(a[name], b[name])), sum(y * y for y in b[name])) for name in b}
    of_all = sum(norm for _, norm in squares.values())
    whole = (sum(far for far, _ in squares.values()) / max(of_all, 1e-60)) ** 0.5
    worst = max((far / norm) ** 0.5 for far, norm in squares.values() if norm > 1e-6 * of_all)
    return whole, worst


def latest_checkpoint(folder):
    steps = sorted(each for each in folder.glob("step-*") if each.is_dir() and not each.name.endswith(".partial"))
    if not steps:
        raise check.Wrong(f"no checkpoint in {os.path.basename(folder)}")
    return steps[-1]
