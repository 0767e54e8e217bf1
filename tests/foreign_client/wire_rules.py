"""The group's half of the rules in docs/wire.md's table. Each class has the group's values x, and exchange()."""

import array
import operator


def plus(a, b):
    """Returns the sum in float32. A group computes in float32 with the values that it sent and got."""
    return array.array("f", map(operator.add, a, b))


def minus(a, b):
    return array.array("f", map(operator.sub, a, b))


def f32(x):
    """Returns the float32 nearest to x. If x is one +, -, x or / of float32 values, computed in float64, that is the float32 result."""
    return array.array("f", (x,))[0]


def scaled(factor, values):
    return array.array("f", (factor * value for value in values))


def normal(values):
    """Returns the values, with 0 in place of subnormal ones."""
    return array.array("f", (value if abs(value) >= 2.0**-126 else 0 for value in values))


def elastic_difference(alpha, x, center):
    """Returns the difference that a server answers under elastic, and adds to the center."""
    return scaled(f32(alpha), minus(x, center))


def mean(factors, contributions):
    """Returns the sum of factor x contribution. Factors are float64 and rounded once. Contributions are in the order of their groups."""
    total = scaled(f32(factors[0]), contributions[0])
    for factor, values in zip(factors[1:], contributions[1:]):
        total = plus(total, scaled(f32(factor), values))
    return total


class Sgd:
    """A server's optimizer for the center's parameters, by the formulas of docs/wire.md."""

    def __init__(self, optimizer, parameters):
        self.options, self.nesterov = optimizer, optimizer.nesterov
        self.rate, self.momentum, self.decay = map(f32, (optimizer.learning_rate, optimizer.momentum, optimizer.weight_decay))
        self.velocity = array.array("f", bytes(4 * parameters))

    def step(self, gradient, parameters):
        slope = plus(gradient, scaled(self.decay, parameters))
        if self.momentum == 0:
            return minus(parameters, scaled(self.rate, slope))
        self.velocity = normal(plus(scaled(self.momentum, self.velocity), slope))
        push = plus(slope, scaled(self.momentum, self.velocity)) if self.nesterov else self.velocity
        return minus(parameters, scaled(self.rate, push))

    def part_of_a_step(self, part, gradient, parameters):
        """Makes a part of a step, as a round of average, bmuf, slowmo or diloco does. docs/wire.md defines `part`."""
        if self.momentum == 0 or part == 1:
            return self.step(gradient, parameters)
        momentum, rate = self.options.momentum, self.options.learning_rate
        push = momentum * (1 - momentum**part) / (1 - momentum)
        of_slope = f32(rate * (1 + momentum if self.nesterov else 1))
        of_velocity = f32(rate * (momentum * push if self.nesterov else push))
        moved = plus(scaled(of_slope, gradient), scaled(of_velocity, self.velocity))
        self.velocity = normal(plus(scaled(f32(momentum**part), self.velocity), gradient))
        return minus(parameters, moved)


class Elastic:
    def __init__(self, exchanges, x):
        self.exchanges, self.x = exchanges, array.array("f", x)

    def exchange(self, sequence):
        for first, _, difference in self.exchanges.exchange(sequence, self.x):
            part = slice(first, first + len(difference))
            self.x[part] = minus(self.x[part], difference)


class Distances:
    """A group under average, bmuf, slowmo or diloco: its own optimizer moves x."""

    def __init__(self, exchanges, center):
        self.exchanges, self.x, self.base = exchanges, array.array("f", center), array.array("f", center)

    def exchange(self, sequence, fragment=0, fragments=1):
        for first, sent, center in self.exchanges.exchange(sequence, minus(self.base, self.x), fragment, fragments):
            part = slice(first, first + len(center))
            moved = plus(minus(self.x[part], self.base[part]), sent)
            self.base[part] = center
            self.x[part] = plus(center, moved)


class Gradients:
    """A group under sync or async. The first values are parameters, the rest are buffers. Parameters stay until an answer comes, while their
    gradients add up."""

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
