"""Matrix products so small that the threads of OpenBLAS meet often."""
import numpy

product = numpy.random.default_rng(1).random((250, 250))
for _ in range(800):
    product = product @ product
    product /= product.max()
