"""The Sample operator on kopf: kopf watches and says which Sample to look at, fresh reads by the official client say what there is.

kopf's handlers of events are not repeated when they fail, and what they are given may be old; so all they do is wake a
worker of the Sample, which has a back-off of its own.
"""

import argparse
import asyncio
import datetime
import logging
import re

import kopf
import kubernetes
from kubernetes.client.exceptions import ApiException

GROUP, VERSION, PLURAL, KIND = "clients.example.com", "v1", "samples", "Sample"
# A child is known by its name, so that no damage to its labels or owners hides it.
CHILD_NAME = re.compile(r"(.+)-([0-9]+)")
# The official client waits for ever unless told otherwise.
TIMEOUT = 15

log = logging.getLogger("sample")
namespace = ""
core: kubernetes.client.CoreV1Api
custom: kubernetes.client.CustomObjectsApi


class Foreign(Exception):
    """A child is controlled by another."""


# === which Sample to look at ===

pending: dict[str, asyncio.Event] = {}
workers: dict[str, asyncio.Task] = {}


@kopf.on.startup()
def settle_in(settings: kopf.OperatorSettings, **_):
    """The resources are known, and no Events are written."""
    settings.scanning.disabled = True
    settings.posting.enabled = False


@kopf.on.login()
def login(logger, settings, **_):
    """Through the official client, which goes by the environment, not by the API server's name."""
    return kopf.login_via_client(logger=logger, settings=settings)


@kopf.on.event(GROUP, VERSION, PLURAL)
async def sample_seen(name, **_):
    wake(name)


@kopf.on.event("", "v1", "configmaps")
async def child_seen(name, **_):
    parts = CHILD_NAME.fullmatch(name)
    if parts:
        wake(parts[1])


def wake(name):
    pending.setdefault(name, asyncio.Event()).set()
    if name not in workers:
        workers[name] = asyncio.create_task(work(name))


async def work(name):
    """Reconciles one Sample whenever it is woken, until it is gone."""
    failures = 0
    while pending[name].is_set():
        pending[name].clear()
        try:
            gone = await asyncio.to_thread(reconcile, name)
            failures = 0
            if not gone:
                await pending[name].wait()
        except Exception as error:  # noqa: BLE001: whatever it was, it is tried again.
            wait = min(0.1 * 2**failures, 10)
            failures += 1
            log.warning("Sample %s: %s; again in %.1f s", name, describe(error), wait)
            await asyncio.sleep(wait)
            pending[name].set()
    del pending[name], workers[name]


def describe(error):
    return f"{error.status} {error.reason}" if isinstance(error, ApiException) else repr(error)


# === what there is to do ===


def reconcile(name):
    """Brings the world to what a Sample asks for; says whether it is gone."""
    try:
        sample = custom.get_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name, _request_timeout=TIMEOUT)
    except ApiException as error:
        if error.status == 404:
            return True
        raise
    # Children go with their owner, by garbage collection.
    if sample["metadata"].get("deletionTimestamp"):
        return False
    found = {}
    for child in core.list_namespaced_config_map(namespace, _request_timeout=TIMEOUT).items:
        parts = CHILD_NAME.fullmatch(child.metadata.name)
        if parts and parts[1] == name:
            found[int(parts[2])] = child
    count = sample["spec"]["count"]
    for number in range(count):
        keep(sample, number, found.get(number))
    for number, child in found.items():
        if number >= count and is_controlled_by(child, sample):
            delete(child)
    report(sample)
    return False


def keep(sample, number, child):
    wanted = {"text": sample["spec"].get("text", "")}
    owner = kubernetes.client.V1OwnerReference(
        api_version=f"{GROUP}/{VERSION}",
        kind=KIND,
        name=sample["metadata"]["name"],
        uid=sample["metadata"]["uid"],
        controller=True,
        block_owner_deletion=True,
    )
    if child is None:
        name = f"{sample['metadata']['name']}-{number}"
        metadata = kubernetes.client.V1ObjectMeta(name=name, owner_references=[owner])
        made = kubernetes.client.V1ConfigMap(metadata=metadata, data=wanted)
        core.create_namespaced_config_map(namespace, made, _request_timeout=TIMEOUT)
        return
    if child.data == wanted and is_controlled_by(child, sample):
        return
    others = [other for other in child.metadata.owner_references or [] if other.uid != owner.uid]
    if any(other.controller for other in others):
        raise Foreign(child.metadata.name)
    child.metadata.owner_references = [*others, owner]
    child.data = wanted
    core.replace_namespaced_config_map(child.metadata.name, namespace, child, _request_timeout=TIMEOUT)


def is_controlled_by(child, sample):
    owners = child.metadata.owner_references or []
    return any(owner.controller and owner.uid == sample["metadata"]["uid"] for owner in owners)


def delete(child):
    """Only the very version that was seen goes: one made anew under its name is somebody else's business."""
    seen = kubernetes.client.V1Preconditions(uid=child.metadata.uid, resource_version=child.metadata.resource_version)
    options = kubernetes.client.V1DeleteOptions(preconditions=seen)
    try:
        core.delete_namespaced_config_map(child.metadata.name, namespace, body=options, _request_timeout=TIMEOUT)
    except ApiException as error:
        if error.status != 404:
            raise


def report(sample):
    """Written only when it differs; the transition time moves only with the condition's status."""
    generation = sample["metadata"]["generation"]
    old = sample.get("status") or {}
    before = next((c for c in old.get("conditions", []) if c["type"] == "Ready"), {})
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Complete",
        "message": "all children are there",
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == "True" else now,
    }
    status = {"observedGeneration": generation, "ready": sample["spec"]["count"], "conditions": [ready]}
    if status == old:
        return
    custom.replace_namespaced_custom_object_status(
        GROUP,
        VERSION,
        namespace,
        PLURAL,
        sample["metadata"]["name"],
        {**sample, "status": status},
        _request_timeout=TIMEOUT,
    )


def main():
    global namespace, core, custom
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    namespace = parser.parse_args().namespace
    kopf.configure()
    kubernetes.config.load_incluster_config()
    core = kubernetes.client.CoreV1Api()
    custom = kubernetes.client.CustomObjectsApi()
    kopf.run(namespaces=[namespace], standalone=True)


if __name__ == "__main__":
    main()
