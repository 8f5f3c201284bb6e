"""A scheduler's questions to Placement, made from flavors and images.

::

    from placement_clients import client
    from placement_clients.request import boot, flavor, image, request, rule

    needs = request.build(
        flavor.parse(flavor_document),
        image.parse(image_document),
        rules=[rule.without_disabled_hosts],
    )
    placement = client.from_environment(url=..., token=...)
    server = boot.Server(uuid, project_id, user_id)
    booted = boot.boot(placement, server, needs)

``preflight`` checks whether a server may be rebuilt from another image where it is, and
``node`` makes the patch that gives a bare metal node the traits of its instance.
``cli`` is the command ``placement-request``.
"""
