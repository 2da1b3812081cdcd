#!/usr/bin/env python3
"""Two ranks that share the GPU, one of which fails: the job ends in time, with exactly one message and exit code 3 or 2.

Ranks that never meet, as those of two jobs, have one each.
"""
import re
import signal
import socket
import time

import check
import training

EXPLAINS = re.compile(r"\d+ problems?, nothing was run$|rank \d+$")  # a count; whose operations are listed below
BEGUN = 60  # seconds until two ranks train
SLACK = 20  # seconds beyond the timeout until all are gone


def two(part, name="gpt2-tiny", **other):
    return training.plan(part, name, "gpt2-tiny", gpus=2, zero_stage=3, dp_shard=2, **other)


def timeout(part):
    """Of the ranks, in seconds."""
    return 3 if part.small else 10


def messages(said):
    """Of what ranks wrote to standard error, the first lines of messages: what explains one is indented below it, and
    "1 problem, nothing was run" counts it, and "rank 0" heads its last operations."""
    return [line for line in said.splitlines() if line.strip() and not line.startswith((" ", "\t")) and not EXPLAINS.match(line)]


def ended(part, running, left_alive, codes, apart=False):
    """All of `running` but those that were killed have ended by themselves in time, each with one of `codes`, and with one
    message together; one each where ranks are `apart`, which never met."""
    limit = time.monotonic() + timeout(part) + SLACK
    rows = []
    for rank, each in enumerate(running):
        done = each.wait(max(1, limit - time.monotonic()))
        rows.append({"rank": rank, "code": done.code, "seconds": round(done.seconds, 1), "timed_out": done.timed_out,
                     "said": check.tail(done.err, 20)})
    judged = [row for row in rows if row["rank"] in left_alive]
    said = [line for row in judged for line in messages(row["said"])]
    counts = [len(messages(row["said"])) for row in judged] if apart else [len(said)]
    in_time = all(not row["timed_out"] and row["code"] in codes for row in judged)
    made = {"ok": in_time and all(count == 1 for count in counts), "messages": said, "ranks": rows}
    if not in_time:
        made["why"] = "; ".join(f"rank {row['rank']} " + ("hung" if row["timed_out"] else f"exit code {row['code']}") for row in judged)
    elif not made["ok"]:
        made["why"] = f"{len(said)} messages: " + " | ".join(said) if said else "no message"
    return made


def trains(part, name):
    """Two ranks under way for longer than the case takes; returns when rank 0 has written some steps."""
    metrics = part.work / f"{name}.jsonl"
    metrics.unlink(missing_ok=True)
    running = training.processes(part, 2, [two(part)] * 2, ["--steps", 1000000, "--timeout", timeout(part), "--metrics", metrics])
    limit = time.monotonic() + min(BEGUN, part.left())
    while not metrics.exists() or len(metrics.read_text().splitlines()) < 3:
        if time.monotonic() > limit or any(each.process.poll() is not None for each in running):
            if part.left() < 1:
                raise check.OutOfTime()
            whys = [each.wait(1).why() for each in running]
            raise check.Wrong("the two ranks never trained: " + whys[0])
        time.sleep(0.1)
    return running


def killed(part):
    running = trains(part, "killed")
    running[1].kill(signal.SIGKILL)
    return ended(part, running, [0], (3,))


def frozen(part):
    running = trains(part, "frozen")
    running[1].kill(signal.SIGSTOP)
    try:
        return ended(part, running[:1], [0], (3,))
    finally:
        running[1].kill(signal.SIGKILL)
        running[1].wait(10)


def other_plan(part):
    plans = [two(part), two(part, "another", sequence=64)]
    running = training.processes(part, 2, plans, ["--steps", 3, "--timeout", timeout(part)])
    return ended(part, running, [0, 1], (2, 3))


def other_job(part):
    """Rank 1 belongs to another job of torchrun's."""
    plan_path, words = two(part), ["--steps", 3, "--timeout", timeout(part)]
    other = {"TORCHELASTIC_RUN_ID": "another", "TORCHELASTIC_RESTART_COUNT": "7"}
    running = [training.process(part, 0, 2, plan_path, words, 31200),
               training.process(part, 1, 2, plan_path, words, 31200, other)]
    return ended(part, running, [0, 1], (2, 3), apart=True)


def other_attempt(part):
    """Rank 1 is of the job's attempt before: it would join with the identifier of NCCL of that one. Under Slurm, where the
    ranks meet whatever the attempt."""
    plan_path, words = two(part), ["--steps", 3, "--timeout", timeout(part)]
    job = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0",
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "31250"}
    running = [part.start(part.program("shardwise-run"), "train", plan_path, "--device", "cuda", "--share-gpu", *words,
                          env={**job, "SLURM_PROCID": str(rank), "SLURM_RESTART_COUNT": str(1 - rank)}) for rank in (0, 1)]
    return ended(part, running, [0, 1], (3,))


def own_address():
    """By which other hosts would reach this one: of local addresses alone, ranks use no ports. None where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return probe.getsockname()[0]
        except OSError:
            return None


def port_taken(part):
    """Another program listens on all sixteen ports behind MASTER_PORT."""
    port, address, taken = 31300, own_address(), []
    if address is None:  # without ports there is nothing to be wrong
        return {"ok": None, "why": "this host has no address but the loopback's, over which ranks use no ports"}
    hosts = {"MASTER_ADDR": address, "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0", "SHARDWISE_SECRET": "0123456789abcdef0123456789abcdef"}
    try:
        for each in range(port, port + 17):
            taken.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            taken[-1].bind((address, each))
            taken[-1].listen(1)
        running = training.processes(part, 2, [two(part)] * 2, ["--steps", 3, "--timeout", timeout(part)], port, hosts)
        return ended(part, running, [0, 1], (2, 3), apart=True)
    finally:
        for listener in taken:
            listener.close()


CASES = (("a rank is killed", killed), ("a rank is frozen", frozen), ("a rank has another plan", other_plan),
         ("a rank is of another job", other_job), ("a rank has another identifier of NCCL", other_attempt), ("the ports are taken", port_taken))


def main():
    part = check.Part("faults")
    part.plan([name for name, _ in CASES])
    for name, function in CASES:
        part.case(name, function, part)
    part.finish()


if __name__ == "__main__":
    main()
