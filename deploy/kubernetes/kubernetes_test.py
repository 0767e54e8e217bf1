#!/usr/bin/env python3
"""deploy/kubernetes without a cluster: the manifests fit together and fit the programs, and the containers' commands train a job.

Each pod is a network namespace with a process of its own. A kubelet, a scheduler and an API server do not take part.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

# Bazel runs a symbolic link to this file, so its real path leads to the tree. Bazel has put the programs into bin/.
sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "tests/benchmarks")]
import hosts  # noqa: E402
import manifests  # noqa: E402
import pod  # noqa: E402
import polling  # noqa: E402
import skips  # noqa: E402

PROGRAMS = pathlib.Path("bin/hooke").resolve().parent
DATA = "/usr/share/datasets/fashion-mnist/t10k"
SERVERS, WORKERS = 2, 2
WAIT_SECONDS = 120
# Where deploy/install-deps unpacks the package kubernetes-client.
UNPACKED = "/usr/local/lib/hooke-tests/kubernetes-client/usr/bin"
TOKEN = "0123456789abcdef0123456789abcdef\n"
JOB = f"""name: pods
model: mlp
data: {{format: idx, train: {DATA}, test: {DATA}}}
train: {{epochs: 1, batch_size: 32, optimizer: {{name: sgd, learning_rate: 0.05}}}}
groups: {{count: 2, ranks: 1, site: kubernetes}}
averaging: {{rule: elastic, interval: 4}}
"""


def template(kind, name):
    return manifests.find(kind, name)["spec"]["template"]


SERVER, WORKER = template("StatefulSet", "hooke-server"), template("Deployment", "hooke-worker")


def container(of):
    (only,) = of["spec"]["containers"]
    return only


def words(of):
    """Returns the text of a container's command and arguments."""
    return "\n".join([*container(of)["command"], *container(of).get("args", [])])


class Manifests(unittest.TestCase):
    @unittest.skipIf(manifests.MISSING, manifests.MISSING)
    def test_objects_are_as_the_api_describes_them(self):
        for item in manifests.objects():
            self.assertEqual(manifests.faults(item), [], item["metadata"]["name"])

    @unittest.skipIf(manifests.MISSING, manifests.MISSING)
    def test_faults_would_be_seen(self):
        def faults(change):
            item = manifests.find("StatefulSet", "hooke-server")
            change(item, container(item["spec"]["template"]))
            return manifests.faults(item)

        pod_path = ".spec.template.spec"
        self.assertEqual(faults(lambda _, only: only.update(volumeMount=[])), [f"{pod_path}.containers[].volumeMount: unknown"])
        self.assertEqual(faults(lambda _, only: only.pop("name")), [f"{pod_path}.containers[]: Invalid value for `name`, must not be `None`"])
        self.assertEqual(faults(lambda item, _: item["spec"].update(replicas="3")), [".spec.replicas: '3' is no int"])
        self.assertEqual(faults(lambda _, only: only["env"].append({"name": "PORT", "value": 7411})), [f"{pod_path}.containers[].env[].value: 7411 is no str"])
        self.assertEqual(faults(lambda _, only: only.update(command="hooke-server")), [f"{pod_path}.containers[].command: not a list"])
        self.assertEqual(faults(lambda item, _: item.update(apiVersion="v1")), ["v1 has no kind StatefulSet"])
        self.assertEqual(faults(lambda item, _: item.update(kind="StatefulSets")), ["apps/v1 has no kind StatefulSets"])

    def test_kubectl_puts_them_together(self):
        kubectl = shutil.which("kubectl", path=f"{UNPACKED}:{os.environ['PATH']}")
        if kubectl is None:
            self.skipTest("no program kubectl: deploy/install-deps unpacks it")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(HERE, folder, dirs_exist_ok=True)
            pathlib.Path(folder, "token").write_text(TOKEN)
            result = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        made = [item for item in manifests.yaml.safe_load_all(result.stdout)]
        self.assertEqual(len(made), len(manifests.objects()) + 1)
        self.assertEqual({item["metadata"].get("namespace") for item in made if item["kind"] != "Namespace"}, {"hooke"})
        images = {only["image"] for item in made if "template" in item.get("spec", {}) for only in item["spec"]["template"]["spec"]["containers"]}
        self.assertEqual(images, {"registry.example.org/hooke:latest"})

    def test_selectors_match_labels(self):
        labels = {"hooke-server": SERVER["metadata"]["labels"], "hooke-worker": WORKER["metadata"]["labels"]}
        self.assertNotEqual(*labels.values())
        for item in manifests.objects():
            spec = item.get("spec", {})
            selector = spec.get("podSelector", spec.get("selector", {}))
            if selector:
                self.assertEqual(selector.get("matchLabels", selector), labels[item["metadata"]["name"]], item["kind"])
        kinds = [item["kind"] for item in manifests.objects() if item["metadata"]["name"] == "hooke-server"]
        self.assertEqual(sorted(kinds), ["NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"])

    def test_ports_are_those_of_the_flags(self):
        (listen,) = re.findall(r"--listen=\S+:(\d+)", words(SERVER))
        (port,) = container(SERVER)["ports"]
        (service,) = manifests.find("Service", "hooke-server")["spec"]["ports"]
        self.assertEqual((str(port["containerPort"]), str(service["port"]), service["targetPort"]), (listen, listen, port["name"]))
        self.assertEqual(manifests.find("StatefulSet", "hooke-server")["spec"]["serviceName"], "hooke-server")
        policy = manifests.find("NetworkPolicy", "hooke-server")["spec"]["ingress"]
        self.assertEqual([str(rule["port"]) for peer in policy for rule in peer.get("ports", [])], [listen])
        for of in (SERVER, WORKER):
            addresses = [entry["value"] for entry in container(of)["env"] if entry["name"] == "HOOKE_COORDINATOR"]
            self.assertEqual(addresses, [f"hooke-server-0.hooke-server:{listen}"])

    def test_flags_are_those_of_the_programs(self):
        for of, program in ((SERVER, "hooke-server"), (WORKER, "hooke-worker")):
            self.assertIn(f"/opt/hooke/bin/{program}", words(of))
            said = subprocess.run([PROGRAMS / program, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
            used = set(re.findall(r"--[a-z][a-z-]*", words(of)))
            self.assertTrue(used and used <= set(re.findall(r"--[a-z][a-z-]*", said)), used)

    def test_variables_and_volumes_are_declared(self):
        for of in (SERVER, WORKER):
            names = {entry["name"] for entry in container(of)["env"]}
            self.assertLessEqual(set(re.findall(r"\$\(?(\w+)\)?", words(of))), names)
            claims = [claim["metadata"]["name"] for claim in manifests.find("StatefulSet", "hooke-server")["spec"]["volumeClaimTemplates"]]
            volumes = {volume["name"]: volume for volume in of["spec"]["volumes"]}
            mounted = {place["name"]: place["mountPath"] for place in container(of)["volumeMounts"]}
            self.assertLessEqual(set(volumes), set(mounted))
            self.assertLessEqual(set(mounted) - set(volumes), set(claims if of is SERVER else []))
            (secret,) = manifests.kustomization()["secretGenerator"]
            self.assertEqual(volumes["token"]["secret"]["secretName"], secret["name"])
            token = next(entry["value"] for entry in container(of)["env"] if entry["name"] == "HOOKE_TOKEN_FILE")
            self.assertEqual(token, f"{mounted['token']}/{secret['files'][0]}")
            self.assertRegex(words(of), rf"--state-dir={mounted['state']}/")

    def test_the_user_is_that_of_the_image(self):
        uid = int(re.search(r"^USER (\d+):", (ROOT / "deploy/Containerfile").read_text(), re.MULTILINE).group(1))
        for of in (SERVER, WORKER):
            context = of["spec"]["securityContext"]
            self.assertEqual({context[key] for key in ("runAsUser", "runAsGroup", "fsGroup")}, {uid})


class Pods(unittest.TestCase):
    def setUp(self):
        if hosts.missing():
            self.skipTest(hosts.missing())
        folder = tempfile.TemporaryDirectory(prefix="hooke-pods-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.network = hosts.Hosts(SERVERS + WORKERS, folder.name, rate=None)
        self.network.__enter__()
        self.addCleanup(self.network.__exit__)
        self.names = [f"hooke-server-{i}" for i in range(SERVERS)] + [f"hooke-worker-{i}" for i in range(WORKERS)]
        # The names that the headless service would give.
        lines = [f"{address} {name}.hooke-server" for address, name in zip(self.network.addresses, self.names[:SERVERS])]
        self.hosts = "\n".join(["127.0.0.1 localhost", *lines, ""])
        self.pods = {}

    def start(self, name):
        host, server = self.names.index(name), name.startswith("hooke-server")
        claims = {}
        if server:
            claims = {"state": str(self.folder / f"{name}.state")}
            pathlib.Path(claims["state"]).mkdir(exist_ok=True)
        self.pods[name] = pod.Pod(
            self.folder, name, ["ip", "netns", "exec", self.network.name(host)], template=SERVER if server else WORKER,
            programs=str(PROGRAMS), hosts=self.hosts, secrets={"hooke-token": {"token": TOKEN}}, claims=claims,
        )  # fmt: skip
        self.addCleanup(self.pods[name].kill)

    def logs(self):
        return "".join(f"\n== {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in sorted(self.folder.glob("*.log")))

    def wait_for(self, what, condition):
        return polling.wait_for(what, condition, WAIT_SECONDS, self.logs)

    def ready(self, name):
        """Waits until the probes succeed, in the order in which the kubelet tries them."""
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = self.pods[name].container.get(kind)
            if probe:
                self.wait_for(f"{kind} of {name}", lambda: self.pods[name].passes(probe))

    def hooke(self, *arguments, text=None):
        """Runs hooke in the first server's pod, as kubectl exec does."""
        result = self.pods["hooke-server-0"].run("hooke", *arguments, input=text)
        if result.returncode:
            raise AssertionError(f"hooke {' '.join(arguments)}: {result.stdout}{result.stderr}{self.logs()}")
        return result.stdout

    def test_a_job_trains_and_pods_end_in_time(self):
        # Without the coordinator a worker is not ready.
        self.start("hooke-worker-0")
        self.assertFalse(self.pods["hooke-worker-0"].passes(container(WORKER)["readinessProbe"]))
        for name in self.names:
            if name not in self.pods:
                self.start(name)
        for name in self.names:
            self.ready(name)
        nodes = self.wait_for("all nodes are alive", self.alive_nodes)
        self.assertEqual([node["slots"] for node in nodes if node["kind"] == "worker"], [2, 2])
        job_id = json.loads(self.hooke("submit", "-", "--output=json", text=JOB))["job_id"]
        self.wait_for("the job has succeeded", lambda: json.loads(self.hooke("jobs", job_id, "--output=json"))["state"] == "succeeded")
        self.assertEqual({name: self.pods[name].end() for name in self.names}, dict.fromkeys(self.names, 0), self.logs())
        # A new pod of the same name has the same volume.
        self.start("hooke-server-0")
        self.ready("hooke-server-0")
        self.assertEqual(json.loads(self.hooke("jobs", job_id, "--output=json"))["state"], "succeeded")

    def alive_nodes(self):
        nodes = json.loads(self.hooke("nodes", "--output=json"))["nodes"]
        good = [node for node in nodes if node["alive"] and not node.get("problem")]
        return nodes if len(good) == len(self.names) else None


if __name__ == "__main__":
    skips.main()
