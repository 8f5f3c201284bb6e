"""A scheduler's questions to Placement, made from flavors and images.

::

    from placement_consumers import client
    from placement_consumers.scheduling import boot, flavor, image, request, rule

``preflight`` checks whether a server may be rebuilt from another image where it is, and
``node`` makes the patch that gives a bare metal node the traits of its instance.
``cli`` is the command ``placement-request``.

``preflight`` checks whether a server may be rebuilt from another image where it is, and
``node`` tells a bare metal node what its instance needs. ``cli`` is the command
``placement-request``.
"""
