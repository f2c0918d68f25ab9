"""The methods of cpd: the options that select each, for tests that repeat a check for every method."""

import os

from tap import sluice

METHODS = {
    "als": ("--reg", "0.1"),
    "hals": ("--nonnegative", "--l1", "2=1", "--bounds", "1=0,5"),
    "admm": ("--smooth", "1=1", "--nonnegative=2", "--simplex=3"),
    "mu": ("--loss", "poisson", "--method", "mu"),
    "pdnr": ("--loss", "poisson", "--method", "pdnr"),
    "completion als": ("--observed", "--method", "als", "--holdout", "10%"),
    "ccd": ("--observed", "--method", "ccd", "--holdout", "10%"),
    "huber": ("--observed", "--loss", "huber", "--holdout", "10%"),
    "gamma": ("--observed", "--loss", "gamma"),
    "bernoulli": ("--observed", "--loss", "bernoulli", "--biases", "mean"),
}


def write_counts(path, *generated):
    """Writes a random tensor of counts as text, and one with their last bits next to it. Returns the two
    paths."""
    bits = path.replace(".tns", "-bits.tns")
    sluice("generate", path, *generated, "-q")
    with open(path) as counts, open(bits, "w") as file:
        for line in counts:
            index, value = line.rsplit(maxsplit=1)
            file.write(f"{index} {int(value) % 2}\n")
    return path, bits


def convert_counts(folder, *generated, options=()):
    """Converts such tensors to stores. Returns a function from a method to its store."""
    stores = []
    for text in write_counts(os.path.join(folder, "t.tns"), *generated):
        stores.append(text.replace(".tns", ".slc"))
        sluice("convert", text, stores[-1], "--keep-zeros", "-q", *options)
        os.remove(text)
    return lambda method: stores[method == "bernoulli"]
