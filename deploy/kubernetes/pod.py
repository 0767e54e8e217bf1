"""A pod's one container as a process, for tests: its command in namespaces and with a root folder of its own, as user and group of the manifest.

It stands in for the kubelet: volumes, variables, probes, and SIGTERM at the end. Its network is a namespace that the test has made. Needs root.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import private_root  # noqa: E402

NAMESPACES = ("mnt", "pid", "net", "uts", "ipc")
ENTER = ["--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wdns=/"]
PATH = "/opt/hooke/bin:/usr/local/bin:/usr/bin:/bin"  # That of deploy/Containerfile.
START_SECONDS = 30


def variables(container, name):
    """Returns the container's environment."""
    values = {"PATH": PATH}
    for entry in container["env"]:
        source = entry.get("valueFrom", {})
        if source.get("fieldRef", {}).get("fieldPath") == "metadata.name":
            values[entry["name"]] = name
        elif "resourceFieldRef" in source:
            kind, resource = source["resourceFieldRef"]["resource"].split(".")
            values[entry["name"]] = container["resources"][kind][resource]
        else:
            values[entry["name"]] = entry["value"]
    return values


def expanded(words, values):
    """Replaces $(NAME) as Kubernetes does: a name that is not known stays."""
    return [re.sub(r"\$\((\w+)\)", lambda match: values.get(match.group(1), match.group(0)), word) for word in words]


def as_user(template, command):
    """Returns the command that runs `command` as user and groups of the pod, without rights that no process of the pod has."""
    context = template["spec"]["securityContext"]
    user, group, more = context["runAsUser"], context["runAsGroup"], context["fsGroup"]
    return ["setpriv", f"--reuid={user}", f"--regid={group}", f"--groups={more}", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--", *command]


def make_volume(volume, path, group, secrets, claims):
    """Makes a volume at `path`. `secrets` has the files of each secret, `claims` the folder of this machine for each claim."""
    path.mkdir(parents=True, exist_ok=True)
    if volume["name"] in claims:
        private_root.mount("--bind", claims[volume["name"]], path)
    else:
        private_root.mount_memory(path, "777")
    if "secret" in volume:
        for name, text in secrets[volume["secret"]["secretName"]].items():
            (path / name).write_text(text)
            (path / name).chmod(volume["secret"]["defaultMode"])
            os.chown(path / name, 0, group)
        private_root.mount("-o", "remount,ro", path)
    else:
        os.chown(path, 0, group)
        path.chmod(0o2777)


def inside(wish):
    """Runs as the first process of the new namespaces and becomes the container's program."""
    private_root.refuse_to_share(wish["outside"], NAMESPACES)
    root, template, name = pathlib.Path(wish["root"]), wish["template"], wish["name"]
    container, group = template["spec"]["containers"][0], template["spec"]["securityContext"]["fsGroup"]
    # The mounts that hide the machine's files come after those that need them.
    private_root.make(root, {"/opt/hooke/bin": wish["programs"]})
    (root / "etc/hosts").write_text(wish["hosts"])
    # The image's user, as deploy/Containerfile makes it. mpirun crashes as a user without a name.
    user = template["spec"]["securityContext"]["runAsUser"]
    with open(root / "etc/passwd", "a") as passwd:
        passwd.write(f"hooke:x:{user}:{group}::/var/lib/hooke:/bin/sh\n")
    volumes = {volume["name"]: volume for volume in [*template["spec"]["volumes"], *({"name": claim} for claim in wish["claims"])]}
    for place in container["volumeMounts"]:
        make_volume(volumes[place["name"]], root / place["mountPath"].lstrip("/"), group, wish["secrets"], wish["claims"])
    private_root.enter(root)
    if container["securityContext"]["readOnlyRootFilesystem"]:
        private_root.mount("-o", "remount,ro", "/")
    socket.sethostname(name)
    values = variables(container, name)
    command = as_user(template, expanded([*container["command"], *container.get("args", [])], values))
    os.execvpe(command[0], command, values)


class Pod:
    """`into` is the command that enters the pod's network. The other arguments are those of `inside`."""

    def __init__(self, folder, name, into, **wish):
        self.name, self.template = name, wish["template"]
        self.container = self.template["spec"]["containers"][0]
        root = pathlib.Path(folder, f"{name}.root")
        root.mkdir(exist_ok=True)
        outside = private_root.links(NAMESPACES)
        unshare = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
        arguments = json.dumps({**wish, "name": name, "root": str(root), "outside": outside})
        self.log = pathlib.Path(folder, f"{name}.log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*into, *unshare, sys.executable, "-B", os.path.realpath(__file__), arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            self.pid = self._first_process()
        except BaseException:
            self.kill()
            raise

    def _first_process(self):
        """Returns the container's first process once its program runs."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children and os.path.basename(os.readlink(f"/proc/{children[0]}/exe")).startswith("hooke-"):
                return int(children[0])
            time.sleep(0.05)
        raise OSError(f"{self.name} did not start: {self.log.read_text()}")

    def run(self, *command, **options):
        """Runs a command in the container, as `kubectl exec` does."""
        enter = ["nsenter", f"--target={self.pid}", *ENTER, *as_user(self.template, command)]
        return subprocess.run(enter, env=variables(self.container, self.name), capture_output=True, text=True, timeout=60, **options)

    def passes(self, probe):
        """Returns whether a probe of the manifest succeeds now."""
        if "exec" in probe:
            return self.run(*probe["exec"]["command"]).returncode == 0
        port = next(port["containerPort"] for port in self.container["ports"] if port["name"] == probe["tcpSocket"]["port"])
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
        return self.run("/usr/bin/python3", "-c", connect).returncode == 0

    def end(self):
        """Ends the container as the kubelet does. Returns the program's exit status, or None if it did not end within its grace."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            return self.process.wait(self.template["spec"]["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()  # With it goes the container's first process, and with that all others.
        self.process.wait()


if __name__ == "__main__":
    inside(json.loads(sys.argv[1]))
