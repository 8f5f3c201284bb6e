"""The numbers that sums over rows are made of, in the database and in memory."""

# Two primes below 2**31. Sums count modulo the first.
MODULUS = 2_147_483_647
OTHER_MODULUS = 2_147_483_629
# The weight of a row is the product of these multiples of its provider's id. With two
# moduli it is no polynomial, whose values some exchanges would leave the same in sum.
FACTOR = 1_103_515_245
OTHER_FACTOR = 1_664_525_069
# How much each field of an inventory counts.
FIELD_FACTORS = {
    "total": 1_009,
    "reserved": 9_176,
    "min_unit": 31_337,
    "max_unit": 48_611,
    "step_size": 65_537,
}
