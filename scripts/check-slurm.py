#!/usr/bin/env python3
"""Runs a plan under a real Slurm: a cluster of this host alone, on loopback, made for it and gone when it is done.

  scripts/check-slurm.py [--build-dir build/release]

Needs the packages in scripts/slurm-packages.txt, installs nothing, and must be run by root, as slurmd is. All files of
the cluster are in a temporary directory; no configuration, key or service of the machine is used or changed.

srun starts four ranks, whose losses must be those of four threads, bit for bit. Then one of four ranks is killed, and
the others must say so and end with exit code 3. Exit status: 0 when all is so, 1 otherwise.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS = 4
DEADLINE_SECONDS = 60

SLURM_CONF = """\
ClusterName=bowline
SlurmctldHost={host}({address})
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
PlugStackConfig=/dev/null
SlurmdParameters=config_overrides
NodeName={host} NodeAddr={address} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Failure(Exception):
    pass


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Cluster:
    """munged, slurmctld and slurmd, as processes of this one."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        self.environment = {**{key: value for key, value in os.environ.items() if not key.startswith("SLURM_")},
                            "SLURM_CONF": str(folder / "slurm.conf")}

    def start(self):
        controller_port, node_port = free_ports(2)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(SLURM_CONF.format(
            folder=self.folder, host=socket.gethostname().split(".")[0], address="127.0.0.1", cpus=RANKS,
            controller_port=controller_port, node_port=node_port))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        subprocess.run(["mungekey", "-c", "-k", self.folder / "munge.key"], check=True)
        self.daemon("munged", "--foreground", "--force", *(
            f"--{name}={self.folder}/munge.{name.replace('-file', '')}"
            for name in ("key-file", "socket", "pid-file", "log-file", "seed-file")))
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged does not open its socket")
        self.daemon("slurmctld", "-D", "-i")
        self.daemon("slurmd", "-D")
        self.wait_for(lambda: self.call("sinfo", "-h", "-o", "%T").stdout.strip() == "idle",
                      "the node does not become idle")

    def daemon(self, *command):
        log = open(self.folder / f"{command[0]}.out", "w", encoding="utf-8")
        self.daemons.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                             env=self.environment))
        log.close()

    def call(self, *command, **keywords):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
                              **keywords)

    def wait_for(self, happens, otherwise):
        until = time.monotonic() + DEADLINE_SECONDS
        while not happens():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.monotonic() > until:
                raise Failure(f"{otherwise}; {', '.join(ended) or 'no daemon'} ended\n" + self.logs())
            time.sleep(0.1)

    def logs(self):
        parts = []
        for path in sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out"), self.folder / "munge.log"]):
            if path.exists():
                parts.append(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-30:]))
        return "\n".join(parts)

    def stop(self):
        if len(self.daemons) == 3:
            self.call("scancel", "--user=root")
        for daemon in reversed(self.daemons):
            if daemon.poll() is None:
                daemon.terminate()
                try:
                    daemon.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        # Each step has a stepd, which ends when the step's processes did.
        until = time.monotonic() + 15
        while left := self.left_behind():
            if time.monotonic() > until:
                raise Failure(f"processes of the cluster are left behind: {left}")
            time.sleep(0.1)

    def left_behind(self):
        left = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes()
            except OSError:
                continue
            if f"SLURM_CONF={self.folder}/slurm.conf".encode() in environment.split(b"\0"):
                left.append(int(process.name))
        return left


def losses(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line, parse_float=str) for line in file]
    return [(line["step"], line["loss"], line["grad_norm"]) for line in lines]


def check_losses(cluster, tools, plan, folder):
    run = [tools / "bowline-run", plan, "--data", ROOT / "test/oracle/tokens.bin", "--steps", "5", "--quiet",
           "--metrics"]
    subprocess.run([*run, folder / "threads.jsonl"], check=True)
    done = cluster.call("srun", "-n", str(RANKS), *run, folder / "srun.jsonl")
    if done.returncode != 0:
        raise Failure(f"srun ended with {done.returncode}\n{done.stderr}\n{cluster.logs()}")
    threads, processes = losses(folder / "threads.jsonl"), losses(folder / "srun.jsonl")
    if len(threads) != 5 or threads != processes:
        raise Failure(f"threads and srun differ:\n{threads}\n{processes}")
    print(f"check-slurm: srun -n {RANKS} trained with the losses of {RANKS} threads, bit for bit; the last is "
          f"{threads[-1][1]}")


def rank_of(process):
    variables = (process / "environ").read_bytes().split(b"\0")
    ranks = [variable for variable in variables if variable.startswith(b"SLURM_PROCID=")]
    return int(ranks[0].split(b"=")[1]) if ranks else None


def check_death(cluster, tools, plan, folder):
    metrics = folder / "killed.jsonl"
    step = subprocess.Popen(["srun", "-n", str(RANKS), "--kill-on-bad-exit=0", "--label", tools / "bowline-run", plan,
                             "--data", ROOT / "test/oracle/tokens.bin", "--steps", "1000000", "--quiet", "--metrics",
                             metrics], env=cluster.environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    try:
        cluster.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 2, "the ranks take no steps")
        victim = [pid for pid in cluster.left_behind() if rank_of(pathlib.Path(f"/proc/{pid}")) == 2 and
                  os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "bowline-run"]
        os.kill(victim[0], signal.SIGKILL)
        _, errors = step.communicate(timeout=DEADLINE_SECONDS)
    finally:
        if step.poll() is None:
            step.kill()
            step.wait()
    for rank in (0, 1, 3):
        says = rf"(?m)^{rank}: bowline-run: error: on rank {rank}: .*cause: rank 2 \(host .*, pid {victim[0]}\) died"
        if not re.search(says, errors):
            raise Failure(f"rank {rank} does not say that rank 2 died:\n{errors}")
    if not re.search(r"tasks? [\d,-]+: Exited with exit code 3", errors):
        raise Failure(f"the survivors did not end with exit code 3:\n{errors}")
    print("check-slurm: when rank 2 was killed, the others named it and ended with exit code 3")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    tools = parser.parse_args().build_dir.resolve() / "bin"
    if os.geteuid() != 0:
        sys.exit("check-slurm: error: slurmd starts processes of users and must be run by root; run this as root")
    with tempfile.TemporaryDirectory(prefix="bowline-slurm-") as name:
        folder = pathlib.Path(name)
        plan = folder / "four.plan"
        subprocess.run([tools / "bowline-compile", ROOT / "test/Models/llama-tiny", "--mode", "train", "--batch", "4",
                        "--seq", "16", "--mesh", "dp=2,tp=2", "--threads", "1", "-o", plan], check=True)
        cluster = Cluster(folder)
        try:
            try:
                cluster.start()
                check_losses(cluster, tools, plan, folder)
                check_death(cluster, tools, plan, folder)
            finally:
                cluster.stop()
        except Failure as failure:
            sys.exit(f"check-slurm: error: {failure}")
    print("check-slurm: passed")


if __name__ == "__main__":
    main()
