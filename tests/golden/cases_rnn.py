"""Cases of make_ops.py: recurrent layers."""

from arrays import i32

RUNTIME = {"only": "onnxruntime"}
REFERENCE = {"only": "reference"}


def groups(case):
    # The reference evaluator knows no lengths, activations of one's own, clips or coupled gates, ONNX Runtime no
    # layout 1.
    def layer(op, gates, states):
        def operands(directions=1, steps=3, batch=2, features=3, hidden=2, bias=True, lengths=None, initial=0):
            shapes = [(steps, batch, features), (directions, gates * hidden, features), (directions, gates * hidden, hidden)]
            shapes.append((directions, 2 * gates * hidden) if bias else None)
            shapes.append(lengths)
            return shapes + [(directions, batch, hidden)] * initial

        def add(name, inputs, **attrs):
            attrs = {"hidden_size": 2, "outputs": 1 + states, **attrs}
            while inputs[-1] is None:
                inputs.pop()
            case(op, name, *inputs, **attrs)

        # Without a bias the reference takes zeros.
        add("no_bias", operands(bias=False))
        add("bias", operands())
        add("states", operands(initial=states))
        add("reverse", operands(initial=states), direction="reverse")
        add("both_directions", operands(directions=2, initial=states), direction="bidirectional")
        add("one_step", operands(steps=1, batch=1))
        add("lengths", operands(lengths=i32(3, 1)), **RUNTIME)
        add("lengths_reverse", operands(lengths=i32(1, 2), initial=states), direction="reverse", **RUNTIME)
        add("lengths_both", operands(directions=2, lengths=i32(2, 3)), direction="bidirectional", **RUNTIME)
        add("clip", operands(), clip=0.3, **RUNTIME)
        x = operands(initial=states)
        x[0] = (2, 3, 3)
        x[5:] = [(2, 1, 2)] * states
        add("layout_1", x, layout=1, **REFERENCE)
        names = {"RNN": ["{}"], "GRU": ["{}", "Tanh"], "LSTM": ["{}", "Tanh", "Softsign"]}[op]
        for activation, attrs in {
            "Relu": {}, "HardSigmoid": {"activation_alpha": [0.3], "activation_beta": [0.4]},
            "Elu": {"activation_alpha": [0.7]}, "Softplus": {}, "LeakyRelu": {}, "ScaledTanh": {"activation_alpha": [0.5], "activation_beta": [0.8]},
            "Affine": {"activation_alpha": [0.5], "activation_beta": [0.2]}, "ThresholdedRelu": {"activation_alpha": [0.1]},
            "Sigmoid": {}, "Softsign": {},
        }.items():  # fmt: skip
            activations = [name.format(activation) for name in names]
            add(f"activation_{activation.lower()}", operands(steps=2), activations=activations, **attrs, **RUNTIME)
        activations = [name.format(a) for a in ("Sigmoid", "Relu") for name in names]
        add("activations_of_both", operands(directions=2), direction="bidirectional", activations=activations, **RUNTIME)
        return operands, add

    def recurrent():
        layer("RNN", 1, 1)
        operands, add = layer("GRU", 3, 1)
        add("linear_before_reset", operands(initial=1), linear_before_reset=1)
        add("linear_before_reset_both", operands(directions=2, lengths=i32(1, 3)), linear_before_reset=1,
            direction="bidirectional", **RUNTIME)  # fmt: skip
        operands, add = layer("LSTM", 4, 2)
        add("peepholes", [*operands(initial=2), (1, 6)])
        add("peepholes_both", [*operands(directions=2, initial=2), (2, 6)], direction="bidirectional")
        add("coupled_gates", operands(), input_forget=1, **RUNTIME)

    return (recurrent,)
