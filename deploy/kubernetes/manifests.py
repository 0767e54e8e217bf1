"""The manifests of this folder, as `kubectl apply -k` sends them, and which fields they may have."""

import pathlib

import yaml

HERE = pathlib.Path(__file__).resolve().parent
# Fields of the objects that are used here, by the API reference. "*": any name. A list stands for its elements. None: a plain value.
META = {"name": None, "namespace": None, "labels": {"*": None}}
SELECTOR = {"matchLabels": {"*": None}}
PROBE = {
    **{name: None for name in ("periodSeconds", "failureThreshold", "timeoutSeconds", "initialDelaySeconds")},
    "exec": {"command": None},
    "tcpSocket": {"port": None},
}
CONTAINER = {
    "name": None, "image": None, "command": None, "args": None,
    "env": {"name": None, "value": None, "valueFrom": {"fieldRef": {"fieldPath": None}, "resourceFieldRef": {"containerName": None, "resource": None}}},
    "ports": {"name": None, "containerPort": None},
    "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE,
    "resources": {"requests": {"*": None}, "limits": {"*": None}},
    "securityContext": {"allowPrivilegeEscalation": None, "readOnlyRootFilesystem": None, "capabilities": {"drop": None}},
    "volumeMounts": {"name": None, "mountPath": None, "readOnly": None},
}  # fmt: skip
POD = {
    "terminationGracePeriodSeconds": None, "automountServiceAccountToken": None,
    "securityContext": {"runAsNonRoot": None, "runAsUser": None, "runAsGroup": None, "fsGroup": None, "seccompProfile": {"type": None}},
    "containers": CONTAINER,
    "volumes": {"name": None, "secret": {"secretName": None, "defaultMode": None}, "emptyDir": {"medium": None, "sizeLimit": None}},
}  # fmt: skip
TEMPLATE = {"metadata": META, "spec": POD}
CLAIM = {"metadata": META, "spec": {"accessModes": None, "resources": {"requests": {"*": None}}}}
PEER = {"podSelector": SELECTOR}
# (apiVersion, kind) -> fields of the spec.
SPECS = {
    ("v1", "Namespace"): None,
    ("v1", "Service"): {"clusterIP": None, "publishNotReadyAddresses": None, "selector": {"*": None}, "ports": {"name": None, "port": None, "targetPort": None}},
    ("apps/v1", "StatefulSet"): {
        "replicas": None, "serviceName": None, "podManagementPolicy": None, "selector": SELECTOR, "template": TEMPLATE, "volumeClaimTemplates": CLAIM,
    },
    ("apps/v1", "Deployment"): {
        "replicas": None, "strategy": {"type": None, "rollingUpdate": {"maxSurge": None, "maxUnavailable": None}}, "selector": SELECTOR, "template": TEMPLATE,
    },
    ("policy/v1", "PodDisruptionBudget"): {"maxUnavailable": None, "selector": SELECTOR},
    ("networking.k8s.io/v1", "NetworkPolicy"): {
        "podSelector": SELECTOR, "policyTypes": None, "ingress": {"from": PEER, "ports": {"protocol": None, "port": None}},
    },
}  # fmt: skip


def kustomization():
    return yaml.safe_load((HERE / "kustomization.yaml").read_text())


def objects():
    """Returns all objects of the kustomization's files."""
    return [item for name in kustomization()["resources"] for item in yaml.safe_load_all((HERE / name).read_text())]


def find(kind, name):
    return next(item for item in objects() if item["kind"] == kind and item["metadata"]["name"] == name)


def unknown_fields(value, fields, path=""):
    """Yields the paths of fields that `fields` does not have."""
    if isinstance(value, list) and fields is not None:
        for element in value:
            yield from unknown_fields(element, fields, path + "[]")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if fields is None or (name not in fields and "*" not in fields):
                yield f"{path}.{name}"
            else:
                yield from unknown_fields(inner, fields.get(name, fields.get("*")), f"{path}.{name}")


def faults(item):
    """Returns the fields of an object that its kind does not have."""
    spec = SPECS[(item["apiVersion"], item["kind"])]
    return list(unknown_fields(item, {"apiVersion": None, "kind": None, "metadata": META, "spec": spec}))
