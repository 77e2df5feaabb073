"""Operations on 64-bit words that are a single machine instruction each; compiled code uses ``instructions``."""


def count_bits(x: int) -> int:
    """Number of bits that are 1."""
    return (int(x) & 2**64 - 1).bit_count()


def lowest_bit(x: int) -> int:
    """Index of the lowest bit that is 1; undefined for 0."""
    return (int(x) & -int(x) & 2**64 - 1).bit_length() - 1


def highest_bit(x: int) -> int:
    """Index of the highest bit that is 1; undefined for 0."""
    return (int(x) & 2**64 - 1).bit_length() - 1


def swap_bytes(x: int) -> int:
    """The eight bytes in reverse order."""
    return int.from_bytes((int(x) & 2**64 - 1).to_bytes(8, "little"), "big", signed=True)
