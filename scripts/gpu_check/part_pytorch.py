#!/usr/bin/env python3
"""Tokens a second and peak memory beside PyTorch: torch.compile alone, and FSDP2 with compiled blocks and tail.

Each contender looks for its best micro-batch and settings, all with the same tokens a step (search()). Then they take turns,
REPEATS times, each time as a new process. The bar is the better of PyTorch's two. Memory is compared at the largest
micro-batch that ours and the bar have both run with the same recompute, each in its fastest settings there: our arena
against what PyTorch allocated at its peak, which is less than it reserved. Beside each row: the floor (floor.py), the FLOP
formula, MFU and peak. Where a target is missed: where the time went on both sides.
"""
import json
import statistics
import typing

import check
import floor
import training

REPEATS = 3
# Issue 14's targets on one H100 80 GB, now and as a goal: tokens/s over PyTorch's, memory at equal micro-batch.
MODELS = {
    "124m": dict(model="gpt2", sequence=1024, batch=64, micro=(64, 32, 16), speed=(1.10, 1.25), memory=(0.50, 0.38), yardstick=463e3),
    "1.5b": dict(model="gpt2-xl", sequence=1024, batch=16, micro=(16, 8, 4), speed=(1.08, 1.20), memory=(0.82, 0.70),
                 yardstick=46.8e3),
    "llama-1b": dict(model="llama-3.2-1b", sequence=8192, batch=4, micro=(4, 2, 1), speed=(1.03, 1.10), memory=(0.65, 0.55)),
    "llama-3b": dict(model="llama-3.2-3b", sequence=8192, batch=2, micro=(2, 1), speed=(1.05, 1.25), memory=(0.83, 0.75)),
}
TARGETS_OF = "NVIDIA H100 80GB HBM3"  # H100 PCIe and NVL are other GPUs
SMALL = {"tiny": dict(model="gpt2-tiny", sequence=64, batch=4, micro=(4, 2), speed=(1.0, 1.0), memory=(1.0, 1.0))}
PYTORCH = ("compile", "fsdp2")
SLOWER = 0.97  # of the best so far: a smaller micro-batch below it ends the search
AUTOTUNE_S = 900  # of the part's time, that must be left to try max-autotune, which may take a third of it


class Settings(typing.NamedTuple):
    micro: int
    recompute: str = "none"
    loss: str = "whole"  # PyTorch's; ours is chunked
    more: str = ""  # "keep gathered" of fsdp2, "max-autotune"

    def name(self):
        return f"{self.micro}" + (" recompute" if self.recompute == "full" else "") + \
            (" chunked" if self.loss == "chunked" else "") + (f" {self.more}" if self.more else "")


def mores(contender):
    return {"ours": (), "compile": ("max-autotune",), "fsdp2": ("keep gathered", "max-autotune")}[contender]


def losses(contender):
    return ("whole",) if contender == "ours" else ("whole", "chunked")


def plain(one, contender):
    """All settings but the extra ones, in the order of the search: large micro-batches first."""
    return [Settings(micro, recompute, loss) for micro in one["micro"] for loss in losses(contender) for recompute in ("none", "full")]


def step(times, tokens, seconds=None):
    """Of `times` the median, or the step of `seconds` that a report has."""
    seconds = seconds or statistics.median(times)
    return {"step_s": seconds, "tokens_per_s": tokens / seconds, "all_s": times}


def ask_pytorch(part, one, contender, settings, steps, words=()):
    """What pytorch_gpu.py printed; None and why where it broke."""
    mode = "off" if part.small else "max-autotune-no-cudagraphs" if settings.more == "max-autotune" else "default"
    done = part.run(part.options.pytorch, check.ROOT / "tests/bench/pytorch_gpu.py", "--model",
                    check.ROOT / f"configs/models/{one['model']}.json", "--sequence-length", one["sequence"], "--micro-batch-size",
                    settings.micro, "--micro-batches", one["batch"] // settings.micro,
                    "--sharding", "fsdp2" if contender == "fsdp2" else "none", "--recompute", settings.recompute,
                    "--loss", settings.loss, "--steps", steps, "--device", "auto" if part.small else "cuda",
                    "--compile-mode", mode, *(["--keep-gathered"] if settings.more == "keep gathered" else []), *words,
                    limit=AUTOTUNE_S / 3 if settings.more == "max-autotune" else 600,
                    env={"TORCHINDUCTOR_CACHE_DIR": str(part.work / "inductor")})
    if "No module named 'torch'" in done.err:
        raise check.Lacking(f"{part.options.pytorch} has no PyTorch (--pytorch names another Python)")
    try:
        said = json.loads(done.out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = None
    if done.code != 0 or done.timed_out or said is None:
        return None, done.why()
    return said, ""


def run_pytorch(part, one, contender, settings, steps):
    said, why = ask_pytorch(part, one, contender, settings, steps)
    if said is None:  # theirs to mend: no figure, and nothing wrong of ours
        return {"ok": None, "again": True, "crashed": True, "why": f"PyTorch failed: {why}"}
    if said["oom"]:
        return {"ok": None, "oom": True, "why": f"does not fit: {said['why']}"}
    return {"ok": None, **step(said["step_s"], one["batch"] * one["sequence"]), "memory_bytes": said.get("peak_allocated_bytes"),
            "said": said}


def run_ours(part, one, settings, steps):
    name = f"{one['model']}-{settings.micro}-{settings.recompute}"
    try:
        path = training.plan(part, name, one["model"], sequence=one["sequence"], batch=one["batch"], dp_shard=1,
                             micro_batch_size=settings.micro, recompute=settings.recompute)
        # Of its first steps some are recorded, and the graph is made.
        run = training.train(part, name, path, "cuda", steps + 10, limit=400)
    except check.DoesNotFit as why:
        return {"ok": None, "oom": True, "why": f"does not fit: {why}"}
    operations = sorted(run.report["timeline"]["operations"], key=lambda each: -each["time_s"])[:12]
    return {"ok": None, **step(run.times, one["batch"] * one["sequence"], run.report["step_time_s"]),
            "memory_bytes": run.report["arena_bytes"],
            "recorded_step_s": run.report.get("recorded_step_time_s"), "parts": run.report["time"],
            "longest": [{key: each[key] for key in ("name", "count", "time_s")} for each in operations]}


def run(part, one, contender, settings, steps):
    row = run_ours(part, one, settings, steps) if contender == "ours" else run_pytorch(part, one, contender, settings, steps)
    if row.get("step_s"):
        row.update(floor.figures(part, one, settings.micro, settings.recompute, row["step_s"]))
    return row


def not_tried(why):
    return {"ok": None, "not_tried": why}


class Search:
    """One contender's way to its best settings of one model. A row that its rules leave out says by which."""

    def __init__(self, part, key, one, contender):
        self.part, self.key, self.one, self.contender = part, key, one, contender

    def name(self, settings):
        return f"{self.key} {self.contender} {settings.name()}"

    def row(self, settings):
        return self.part.cases.get(self.name(settings), {})

    def every(self):
        """All settings that there are."""
        first = plain(self.one, self.contender)
        return first + [settings._replace(more=more) for settings in first for more in mores(self.contender)]

    def ran(self, settings=None):
        """Settings that ran -> tokens a second."""
        rows = {each: self.row(each) for each in (settings or self.every())}
        return {each: row["tokens_per_s"] for each, row in rows.items() if row.get("tokens_per_s")}

    def best(self):
        ran = self.ran()
        if not ran:
            raise check.Lacking(f"{self.contender}: nothing ran")
        return max(ran, key=ran.get)

    def skip_plain(self, settings):
        """Why not to try these settings; "" to try them."""
        if settings.recompute == "full" and not self.row(settings._replace(recompute="none")).get("oom"):
            return "recompute only adds work where none is needed to fit"
        micros = self.one["micro"]
        larger = [self.ran([each for each in plain(self.one, self.contender) if each.micro == micro])
                  for micro in micros[:micros.index(settings.micro)]]
        fastest = [max(each.values()) for each in larger if each]
        if len(fastest) >= 2 and fastest[-1] < SLOWER * max(fastest):
            return "smaller micro-batches are slower already"
        return ""

    def skip_more(self, settings):
        if settings._replace(more="") != self.best_plain:
            return "other settings are the best"
        if settings.more == "max-autotune" and self.part.left() < AUTOTUNE_S:
            return "time"
        return ""

    def run(self, settings, skip):
        """False where time is over."""
        why = skip(settings)
        again = {"again": True} if why == "time" else {}
        function = (lambda: {**not_tried(why), **again}) if why else (lambda: run(self.part, self.one, self.contender, settings, 5))
        return self.part.case(self.name(settings), function) is not None

    def go(self):
        if not all(self.run(each, self.skip_plain) for each in plain(self.one, self.contender)):
            return False
        ran = self.ran(plain(self.one, self.contender))
        self.best_plain = max(ran, key=ran.get, default=None)
        return all(self.run(each, self.skip_more) for each in self.every() if each.more)


def repeat(search):
    settings = search.best()
    return {**run(search.part, search.one, search.contender, settings, 10), "settings": settings._asdict()}


def drop_old_turns(part, key, searches):
    """Turns of settings that are the best no more run again, and what follows from them."""
    for contender, search in searches.items():
        rows = [row for turn in range(REPEATS) if (row := part.cases.get(f"{key} turn {turn} {contender}"))]
        if search.ran() and any(row.get("settings") != search.best()._asdict() for row in rows):
            for name in [*(f"{key} turn {turn} {contender}" for turn in range(REPEATS)), f"{key} profile", f"{key} verdict"]:
                part.cases.pop(name, None)


def medians(part, key):
    """Tokens a second by contender, over its turns."""
    made = {}
    for contender in ("ours", *PYTORCH):
        rows = [part.cases.get(f"{key} turn {turn} {contender}", {}) for turn in range(REPEATS)]
        values = [row["tokens_per_s"] for row in rows if row.get("tokens_per_s")]
        if values:
            made[contender] = statistics.median(values)
    theirs = [name for name in PYTORCH if name in made]
    if "ours" not in made or not theirs:
        raise check.Lacking("no figures of " + ("ours" if "ours" not in made else "PyTorch"))
    return made, max(theirs, key=made.get)


def memory_of(searches, bar):
    """At the largest micro-batch that both ran with the same recompute, in the fastest settings of each there."""
    fastest = []
    for search in (searches["ours"], searches[bar]):
        by_micro = {}
        for settings, rate in sorted(search.ran().items(), key=lambda each: each[1]):
            if search.row(settings).get("memory_bytes"):
                by_micro[settings.micro, settings.recompute] = search.row(settings)
        fastest.append(by_micro)
    same = [key for key in fastest[0] if key in fastest[1]]
    if not same:
        return None
    micro, recompute = max(same, key=lambda key: (key[0], key[1] == "none"))
    ours, theirs = (each[micro, recompute]["memory_bytes"] for each in fastest)
    return {"micro_batch_size": micro, "recompute": recompute, "ours_bytes": ours, "pytorch_bytes": theirs, "share": ours / theirs}


def met(one, which, speed, memory):
    return speed >= one["speed"][which] and memory is not None and memory["share"] <= one["memory"][which]


def profile(part, key, one, searches):
    """One step of PyTorch's better one by kinds of kernels, where the goal is missed."""
    rates, bar = medians(part, key)
    if met(one, 1, rates["ours"] / rates[bar], memory_of(searches, bar)):
        return not_tried("the goal is met")
    said, why = ask_pytorch(part, one, bar, searches[bar].best(), 3, ["--profile"])
    if said is None or said["oom"]:
        return {"ok": None, "again": True, "why": why or "does not fit with its profile"}
    return {"ok": None, "contender": bar, **said.get("profile", {})}


def verdict(part, key, one, searches):
    rates, bar = medians(part, key)
    memory, speed = memory_of(searches, bar), rates["ours"] / rates[bar]
    row = {"tokens_per_s": rates, "bar": bar, "speed": speed, "memory": memory, "llm_c_tokens_per_s": one.get("yardstick"),
           "targets": {"now": [one["speed"][0], one["memory"][0]], "goal": [one["speed"][1], one["memory"][1]]},
           "now_met": met(one, 0, speed, memory), "goal_met": met(one, 1, speed, memory)}
    for contender in ("ours", bar):
        last = part.cases.get(f"{key} turn {REPEATS - 1} {contender}", {})
        row[contender] = {name: last.get(name) for name in ("settings", "step_s", "mfu", "peak_tflops", "flops_formula", "floor",
                                                            "floor_over_step")}
    if not row["goal_met"]:
        ours = part.cases.get(f"{key} turn {REPEATS - 1} ours", {})
        row["where_time_went"] = {"ours": {name: ours.get(name) for name in ("parts", "longest")},
                                  "pytorch": part.cases.get(f"{key} profile")}
    row["ok"] = row["now_met"] if part.gpu_name() == TARGETS_OF and not part.small else None
    if row["ok"] is False:
        share = f"{memory['share']:.2f}" if memory else "not known"
        row["why"] = (f"tokens/s {speed:.2f} of PyTorch's ({bar}), {one['speed'][0]} wanted; memory {share}, "
                      f"{one['memory'][0]} wanted")
    return row


def torch_build(part):
    """Of PyTorch's candidates: the script and the version that run them, not our programs."""
    said = part.run(part.options.pytorch, "-c", "import torch; print(torch.__version__)", limit=120).out.strip()
    return f"{check.digest_of([check.ROOT / 'tests/bench/pytorch_gpu.py'])} {said.splitlines()[-1] if said else 'none'}"


def main():
    part = check.Part("pytorch")
    models = SMALL if part.small else MODELS
    names, builds, of_torch = [], {}, torch_build(part)
    searches = {key: {contender: Search(part, key, one, contender) for contender in ("ours", *PYTORCH)} for key, one in models.items()}
    for key in models:
        for contender, search in searches[key].items():
            of = [search.name(settings) for settings in search.every()]
            names += of
            builds.update(dict.fromkeys(of, of_torch) if contender in PYTORCH else {})
        names += [f"{key} turn {turn} {contender}" for turn in range(REPEATS) for contender in searches[key]]
        names += [f"{key} profile", f"{key} verdict"]
    part.plan(names, builds)
    for key, one in models.items():
        # The verdict is of the turns, the turns of the candidates: what time cut comes first in the next call.
        rest = [(f"{key} turn {turn} {contender}", repeat, (search,))
                for turn in range(REPEATS) for contender, search in searches[key].items()]
        rest += [(f"{key} profile", profile, (part, key, one, searches[key])),
                 (f"{key} verdict", verdict, (part, key, one, searches[key]))]
        if not all(search.go() for search in searches[key].values()):
            break
        drop_old_turns(part, key, searches[key])
        if any(part.case(name, function, *arguments) is None for name, function, arguments in rest):
            break
    part.finish()


if __name__ == "__main__":
    main()
