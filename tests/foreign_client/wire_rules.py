"""What a group does with what it sends and gets, by docs/wire.md's table: each class has the group's values x, and exchange()."""

import array
import operator


def plus(a, b):
    """In float32, as all that a group computes with what was sent and answered."""
    return array.array("f", map(operator.add, a, b))


def minus(a, b):
    return array.array("f", map(operator.sub, a, b))


class Elastic:
    def __init__(self, exchanges, x):
        self.exchanges, self.x = exchanges, array.array("f", x)

    def exchange(self, sequence):
        for first, _, difference in self.exchanges.exchange(sequence, self.x):
            part = slice(first, first + len(difference))
            self.x[part] = minus(self.x[part], difference)


class Distances:
    """average, bmuf, slowmo and diloco: the group's own optimizer moves x."""

    def __init__(self, exchanges, center):
        self.exchanges, self.x, self.base = exchanges, array.array("f", center), array.array("f", center)

    def exchange(self, sequence, fragment=0, fragments=1):
        for first, sent, center in self.exchanges.exchange(sequence, minus(self.base, self.x), fragment, fragments):
            part = slice(first, first + len(center))
            moved = plus(minus(self.x[part], self.base[part]), sent)
            self.base[part] = center
            self.x[part] = plus(center, moved)


class Gradients:
    """sync and async: the first values are parameters, which stay until an answer while their gradients add up; the rest are buffers."""

    def __init__(self, exchanges, center, parameters):
        self.exchanges, self.x, self.base = exchanges, array.array("f", center), array.array("f", center)
        self.parameters, self.sum = parameters, array.array("f", bytes(4 * parameters))

    def step(self, gradient):
        self.sum = plus(self.sum, gradient)

    def exchange(self, sequence):
        values = self.sum + minus(self.base[self.parameters :], self.x[self.parameters :])
        for first, sent, center in self.exchanges.exchange(sequence, values):
            stepped = min(max(self.parameters - first, 0), len(center))
            middle, end = first + stepped, first + len(center)
            self.sum[first:middle] = minus(self.sum[first:middle], sent[:stepped])
            moved = plus(minus(self.x[middle:end], self.base[middle:end]), sent[stepped:])
            self.base[first:end] = center
            self.x[first:middle] = center[:stepped]
            self.x[middle:end] = plus(center[stepped:], moved)
