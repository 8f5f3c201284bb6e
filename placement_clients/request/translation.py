"""Nova's translation of flavors and images: CPU policies, TPM, encrypted memory.

An extra spec ``hw:…`` and an image property ``hw_…`` mean the same. An objection says
why a value has no effect; Nova refuses the server then.
"""

import collections
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

import os_resource_classes
from oslo_utils.strutils import FALSE_STRINGS, TRUE_STRINGS

from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image
from placement_clients.request.spec import FORBIDDEN, REQUIRED, Spec

SHARED, DEDICATED, MIXED = "shared", "dedicated", "mixed"
HYPERTHREADING = "HW_CPU_HYPERTHREADING"
TPM = "COMPUTE_SECURITY_TPM_"
TPM_MODELS = {"1.2": ("tpm-tis",), "2.0": ("tpm-tis", "tpm-crb")}
ADDRESSES = ("emulate", "passthrough")
# The extra specs by which Nova chooses a host without a query.
BESIDE = re.compile(
    r"(pci_passthrough:alias|accel:device_profile|hw:numa_.*|hw:mem_page_size"
    r"|aggregate_instance_extra_specs:.*|hw:viommu_model|hw:locked_memory)"
)
CPU_SET = re.compile(r"\^?\d{1,4}(-\d{1,4})?")


class Objection(Exception):
    """A value that Nova refuses. The message names it."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """A flavor and an image, with the settings that either may have."""

    flavor: Flavor
    image: Mapping[str, str]

    def get(self, name: str) -> tuple[str | None, str | None]:
        """Return a setting of the flavor, and that of the image."""
        return self.flavor.extra_specs.get(f"hw:{name}"), self.image.get(f"hw_{name}")

    def either(self, name: str) -> str | None:
        """Return a setting that flavor and image must not contradict each other in."""
        ours, theirs = self.get(name)
        if ours is not None and theirs is not None and ours != theirs:
            raise Objection(
                f"{self.origin(name)} = {ours!r}: the image has hw_{name} = {theirs!r}"
            )
        return ours if ours is not None else theirs

    def origin(self, name: str) -> str:
        """Return where a setting is written: that of the flavor comes first."""
        if self.get(name)[0] is not None:
            return f"flavor extra spec hw:{name}"
        return f"image property hw_{name}"

    def amount(self, resource_class: str, amount: int, name: str) -> Spec:
        """Return an amount that a setting requires."""
        return Spec("resources", "", resource_class, str(amount), self.origin(name))

    def trait(self, trait: str, name: str, value: str = REQUIRED) -> Spec:
        """Return a trait that a setting requires."""
        return Spec("trait", "", trait, value, self.origin(name))

    def choose(self, name: str, value: str | None, allowed: Mapping | tuple) -> None:  # type: ignore[type-arg]
        """Check that a setting has one of some values, or none."""
        if value is not None and value not in allowed:
            listed = ", ".join(allowed)
            raise Objection(f"{self.origin(name)} = {value!r}: it is none of {listed}")


def translate(flavor: Flavor, image: Image | None) -> tuple[list[Spec], list[str]]:
    """Return the specs of Nova's translation, and the objections to settings."""
    settings = _Asked(flavor, image.properties if image else {})
    specs, objections = [], []
    for rule in RULES:
        try:
            specs += list(rule(settings))
        except Objection as exc:
            objections.append(str(exc))
    return specs, objections


def list_beside(flavor: Flavor) -> list[str]:
    """Return the extra specs by which Nova decides without a query."""
    return sorted(key for key in flavor.extra_specs if BESIDE.fullmatch(key))


def _cpus(asked: _Asked) -> Iterator[Spec]:
    policy = _cpu_policy(asked)
    if policy in (None, SHARED):
        return
    vcpus = asked.flavor.vcpus
    pinned = vcpus if policy == DEDICATED else len(_dedicated(asked))
    threads = asked.flavor.extra_specs.get("hw:emulator_threads_policy")
    asked.choose("emulator_threads_policy", threads, ("isolate", "share"))
    yield asked.amount("PCPU", pinned + (threads == "isolate"), "cpu_policy")
    if policy == MIXED:
        yield asked.amount("VCPU", vcpus - pinned, "cpu_policy")


def _cpu_policy(asked: _Asked) -> str | None:
    """Return the policy: that of the flavor, which the image may not make stricter."""
    ours, theirs = asked.get("cpu_policy")
    for value in (ours, theirs):
        asked.choose("cpu_policy", value, (SHARED, DEDICATED, MIXED))
    order = (SHARED, MIXED, DEDICATED)
    if ours and theirs and order.index(theirs) > order.index(ours):
        raise Objection(
            f"image property hw_cpu_policy = {theirs!r}: the flavor has "
            f"hw:cpu_policy = {ours!r}, which the image may not override"
        )
    return ours or theirs


def _dedicated(asked: _Asked) -> set[int]:
    """Return the dedicated CPUs that a mask names; ``^`` excludes some."""
    key = "hw:cpu_dedicated_mask"
    mask, vcpus = asked.flavor.extra_specs.get(key), asked.flavor.vcpus
    if mask is None:
        raise Objection(f"{asked.origin('cpu_policy')} = 'mixed': there is no {key}")
    named, excluded = set[int](), set[int]()
    for part in mask.split(","):
        if not CPU_SET.fullmatch(part.strip()):
            raise Objection(f"flavor extra spec {key} = {mask!r}: it is no set of CPUs")
        first, _, last = part.strip().removeprefix("^").partition("-")
        cpus = range(int(first), int(last or first) + 1)
        (excluded if part.strip().startswith("^") else named).update(cpus)
    cpus_there = set(range(vcpus))
    dedicated = (cpus_there if mask.strip().startswith("^") else named) - excluded
    if not dedicated or not dedicated < cpus_there:
        raise Objection(
            f"flavor extra spec {key} = {mask!r}: it must name some of the {vcpus} "
            "CPUs, and not all"
        )
    return dedicated


def _threads(asked: _Asked) -> Iterator[Spec]:
    name = "cpu_thread_policy"
    ours, theirs = asked.get(name)
    policy = theirs or ours if ours == "prefer" else asked.either(name)
    asked.choose(name, policy, ("prefer", "require", "isolate"))
    if policy == "require":
        yield asked.trait(HYPERTHREADING, name)
    elif policy == "isolate":
        yield asked.trait(HYPERTHREADING, name, FORBIDDEN)


def _encryption(asked: _Asked) -> Iterator[Spec]:
    name = "mem_encryption"
    values = [each and each.lower() for each in asked.get(name)]
    for value in values:
        asked.choose(name, value, (*TRUE_STRINGS, *FALSE_STRINGS))
    wishes = {value in TRUE_STRINGS for value in values if value is not None}
    if len(wishes) > 1:
        raise Objection(f"flavor extra spec hw:{name}: the image says otherwise")
    if wishes != {True}:
        return
    if asked.image.get("hw_firmware_type") != "uefi":
        raise Objection(f"{asked.origin(name)}: the image has no hw_firmware_type=uefi")
    if "q35" not in asked.image.get("hw_machine_type", "q35"):
        raise Objection(f"{asked.origin(name)}: the hw_machine_type is not q35")
    yield asked.amount("MEM_ENCRYPTION_CONTEXT", 1, name)
    yield asked.trait("HW_CPU_X86_AMD_SEV", name)


def _tpm(asked: _Asked) -> Iterator[Spec]:
    version, model = asked.either("tpm_version"), asked.either("tpm_model")
    if version is None:
        if model is not None:
            raise Objection(f"{asked.origin('tpm_model')}: there is no hw:tpm_version")
        return
    asked.choose("tpm_version", version, TPM_MODELS)
    asked.choose("tpm_model", model, TPM_MODELS[version])
    yield asked.trait(f"{TPM}{version.replace('.', '_')}", "tpm_version")
    kind = (model or "tpm-tis").removeprefix("tpm-").upper()
    yield asked.trait(f"{TPM}{kind}", "tpm_model" if model else "tpm_version")


def _memory(asked: _Asked) -> Iterator[Spec]:
    """Translate the names of persistent memory, and the mode of addresses."""
    names = asked.flavor.extra_specs.get("hw:pmem", "")
    counts = collections.Counter(filter(None, map(str.strip, names.split(","))))
    for name, count in sorted(counts.items()):
        label = os_resource_classes.normalize_name(f"PMEM_NAMESPACE_{name}")
        yield asked.amount(label, count, "pmem")
    mode = asked.flavor.extra_specs.get("hw:maxphysaddr_mode")
    asked.choose("maxphysaddr_mode", mode, ADDRESSES)
    if mode:
        traits = {"emulate": "EMULATED", "passthrough": "PASSTHROUGH"}
        yield asked.trait(f"COMPUTE_ADDRESS_SPACE_{traits[mode]}", "maxphysaddr_mode")


RULES: tuple[Callable[[_Asked], Iterator[Spec]], ...] = (
    *(_cpus, _threads, _encryption, _tpm, _memory),
)
