"""The manifests of this folder, as `kubectl apply -k` sends them, and what Kubernetes' own API description says against them."""

import importlib.util
import pathlib
import re

import yaml

HERE = pathlib.Path(__file__).resolve().parent
# Debian's package of the Python client, whose classes are made from the API's OpenAPI description.
MISSING = "" if importlib.util.find_spec("kubernetes") else "no Python module kubernetes: deploy/install-deps installs it"
# What a field of a plain type may hold.
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object, "quantity": (str, int, float)}


def kustomization():
    return yaml.safe_load((HERE / "kustomization.yaml").read_text())


def objects():
    """Returns all objects of the kustomization's files."""
    return [item for name in kustomization()["resources"] for item in yaml.safe_load_all((HERE / name).read_text())]


def find(kind, name):
    return next(item for item in objects() if item["kind"] == kind and item["metadata"]["name"] == name)


def faults(item):
    """Returns what the API of Kubernetes has against an object: "path: what", one for each field that is unknown, missing or of another type."""
    from kubernetes import client

    group, _, version = item["apiVersion"].rpartition("/")
    api = getattr(client, f"{group.partition('.')[0].capitalize() or 'Core'}{version.capitalize()}Api", None)
    kind = re.sub(r"(?<!^)([A-Z])", r"_\1", item["kind"]).lower()
    if not any(hasattr(api, f"create{scope}_{kind}") for scope in ("", "_namespaced")):
        return [f"{item['apiVersion']} has no kind {item['kind']}"]
    return list(faults_of(item, version.capitalize() + item["kind"], ""))


def faults_of(value, kind, path):
    """Yields the faults of a value that the API describes as `kind`: a class of the client, a plain type, list[kind] or dict(str, kind)."""
    from kubernetes import client

    container = re.fullmatch(r"list\[(.*)\]|dict\(str, (.*)\)", kind)
    if container:
        of_list, of_dict = container.groups()
        if not isinstance(value, list if of_list else dict):
            yield f"{path}: not a {'list' if of_list else 'map'}"
            return
        for key, inner in enumerate(value) if of_list else value.items():
            yield from faults_of(inner, of_list or of_dict, f"{path}[]" if of_list else f"{path}.{key}")
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (kind == "int" and isinstance(value, bool)):
            yield f"{path}: {value!r} is no {kind}"
    elif not isinstance(value, dict):
        yield f"{path}: not a map"
    else:
        model = getattr(client, kind)
        attributes = {name: attribute for attribute, name in model.attribute_map.items()}
        yield from (f"{path}.{name}: unknown" for name in value if name not in attributes)
        known = {attributes[name]: inner for name, inner in value.items() if name in attributes}
        try:
            # It refuses what lacks a required field, or has a value that its field does not allow.
            model(**known)
        except ValueError as error:
            yield f"{path}: {error}"
        for attribute, inner in known.items():
            # The client says that quantities are strings. Kubernetes takes numbers, too, as `cpu: 2`.
            of = "dict(str, quantity)" if kind == "V1ResourceRequirements" else model.openapi_types[attribute]
            yield from faults_of(inner, of, f"{path}.{model.attribute_map[attribute]}")
