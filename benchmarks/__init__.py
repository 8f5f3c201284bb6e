"""How fast the service answers about clouds of many sizes, and how that is measured."""
