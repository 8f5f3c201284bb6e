"""What an operator of bare metal expects, from enrolment to a request for nodes."""

from placement_clients.record import TRAITS
from tests.client import new_uuid
from tests.nodes.world import GOLD, World, gold

QUESTION = f"resources={GOLD}:1&required="


def enrol_three(world: World) -> tuple[str, str, str]:
    return (
        world.enrol("n1", "CUSTOM_POOL_B"),
        world.enrol("n2", "CUSTOM_POOL_GENERAL"),
        world.enrol("n3", "CUSTOM_POOL_GENERAL", "CUSTOM_RAID1"),
    )


def test_pools_are_found_by_their_traits(world: World) -> None:
    n1, n2, n3 = enrol_three(world)
    assert not world.run().failed
    assert world.candidates(f"{QUESTION}CUSTOM_POOL_GENERAL") == {n2, n3}
    assert world.candidates(f"{QUESTION}CUSTOM_POOL_B") == {n1}
    assert world.candidates(f"{QUESTION}CUSTOM_POOL_GENERAL,!CUSTOM_RAID1") == {n2}


def test_a_node_in_maintenance_is_not_allocated(world: World) -> None:
    uuids = enrol_three(world)
    world.run()
    world.nodes.call("PUT", "/v1/nodes/n2/maintenance")
    world.run()
    assert world.candidates(f"{QUESTION}CUSTOM_POOL_GENERAL") == {uuids[2]}
    before = [world.generation(uuid) for uuid in uuids]
    world.run()
    assert [world.generation(uuid) for uuid in uuids] == before
    world.nodes.call("DELETE", "/v1/nodes/n2/maintenance")
    world.run()
    assert world.candidates(f"{QUESTION}CUSTOM_POOL_GENERAL") == set(uuids[1:])


def test_the_node_service_decides_about_traits(world: World) -> None:
    *_, n3 = enrol_three(world)
    world.run()
    world.placement.put("/traits/CUSTOM_MANUAL", version="1.6")
    generation = world.placement.get_part(n3, TRAITS).generation
    world.placement.replace(n3, TRAITS, generation, {"CUSTOM_MANUAL"})
    world.run()
    assert world.traits(n3) == {"CUSTOM_POOL_GENERAL", "CUSTOM_RAID1"}


def test_an_instance_keeps_its_resource_class(world: World) -> None:
    *_, n3 = enrol_three(world)
    world.run()
    world.claim(n3, new_uuid())
    world.nodes.change("n3", resource_class="baremetal.silver")
    world.nodes.set_traits("n3", ["CUSTOM_POOL_B"])
    assert world.run().failed == {n3}
    assert world.inventories(n3) == gold()
    assert world.traits(n3) == {"CUSTOM_POOL_B"}


def test_a_deployed_node_is_not_allocated_again(world: World) -> None:
    n1, *_ = enrol_three(world)
    world.run()
    instance = new_uuid()
    world.claim(n1, instance)
    world.nodes.change(
        "n1", instance_uuid=instance, instance_info={"traits": ["CUSTOM_POOL_B"]}
    )
    world.nodes.provision("n1", "active")
    assert not world.run().failed
    assert world.inventories(n1) == gold(reserved=1)
    assert world.candidates(f"{QUESTION}CUSTOM_POOL_B") == set()
    world.nodes.provision("n1", "deleted")
    world.placement.delete(f"/allocations/{instance}", version="1.0")
    world.run()
    assert world.candidates(f"{QUESTION}CUSTOM_POOL_B") == {n1}
