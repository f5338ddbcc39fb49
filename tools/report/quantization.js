const outcome = data.outcome;

// 999 stands for no noise, null for outputs that are not numbers.
const decibels = db => db === null ? 'not a number' :
    Math.abs(db) < 999             ? db.toFixed(1) + ' dB' :
    db > 0                         ? 'exact' :
                                     '−∞ dB';
const milliseconds = ms => short(ms, 3) + ' ms';

const label = (name, op) => html('span', {class: 'name', title: name + ' (' + op + ')'}, html('bdi', {}, name));

// Signal to noise ratios that are null in JSON are infinite: no noise, or noise where there should be nothing.
const ratio = (db, cosine) => db !== null ? db : cosine > 0 ? Infinity : -Infinity;
const layers = outcome.layers
                   .map(layer => ({
                          name: layer.node,
                          op: layer.op,
                          cosine: layer.alone_cosine,
                          alone: ratio(layer.alone_sqnr_db, layer.alone_cosine),
                          together: ratio(layer.accumulated_sqnr_db, layer.accumulated_cosine),
                        }))
                   .sort((a, b) => a.alone - b.alone);
const noise = layer => Math.pow(10, -layer.alone / 10);
const allNoise = sum(layers.map(noise));
const share = layer => allNoise > 0 && Number.isFinite(allNoise) ? noise(layer) / allNoise : 0;

function totals() {
  const {files, speed, accuracy, nodes} = data;
  const faster = speed.float.ms / speed.int8.ms;
  const first = accuracy.outputs[0];
  at('#totals').append(
      figure(
          'Size', short(files.float.bytes / files.int8.bytes, 3) + '×', 'smaller',
          bytes(files.float.bytes) + ' → ' + bytes(files.int8.bytes)),
      figure(
          'Speed', short(faster, 3) + '×', 'as fast as float',
          milliseconds(speed.float.ms) + ' → ' + milliseconds(speed.int8.ms), 'both as this library runs them'),
      figure(
          'Accuracy', decibels(first.sqnr_db), 'SQNR',
          ...accuracy.outputs.slice(1).map(output => output.name + ': ' + decibels(output.sqnr_db)),
          accuracy.top1_agreement === null ? 'cosine ' + short(first.cosine, 5) :
                                             'same top class for ' + percent(accuracy.top1_agreement) + ' of ' +
                  plural(data.samples.compared, 'sample'),
          ...Object.entries(outcome.targets).map(
              ([name, target]) => name + ' ' + short(target.wanted, 4) + (target.holds ? ': reached' : ': NOT reached'))),
      figure(
          'In integers', String(nodes.int8), 'of ' + plural(nodes.all, 'node'),
          (outcome.float_nodes.length || 'none') + ' left in float'));
  if (layers.length === 0) return;
  at('#totals').append(html(
      'div', {class: 'card wide'}, html('h3', {}, 'Most sensitive layers'),
      html(
          'ol', {},
          ...layers.slice(0, 3).map(
              layer => html(
                  'li', {}, html('span', {class: 'name'}, layer.name), ' ',
                  html(
                      'span', {class: 'quiet'},
                      '(' + layer.op + ') ' + decibels(layer.alone) + ', ' + percent(share(layer)) +
                          ' of the noise'))))));
}

function sensitivity() {
  const finite = layers.flatMap(layer => [layer.alone, layer.together]).filter(Number.isFinite);
  const top = Math.ceil(Math.max(10, ...finite) / 10) * 10, step = top > 60 ? 20 : 10;
  const x = db => Math.max(0, Math.min(100, 100 * db / top));
  const ticks = [];
  for (let db = 0; db <= top; db += step) ticks.push(db);
  const row = layer => {
    const kind = share(layer) >= 0.1 ? 'bad' : share(layer) >= 0.03 ? 'warn' : 'good';
    return html(
        'div', {
          class: 'row',
          title: layer.name + ' (' + layer.op + ')\nalone ' + decibels(layer.alone) + ', cosine ' +
              short(layer.cosine, 6) + '\nin the quantized model ' + decibels(layer.together) + '\n' +
              percent(share(layer)) + ' of the noise of all layers'
        },
        label(layer.name, layer.op),
        svg('svg', {class: 'bar', viewBox: '0 0 100 20', preserveAspectRatio: 'none'},
            ...ticks.map(db => svg('line', {class: 'grid-line', x1: x(db), x2: x(db), y1: 0, y2: 20})),
            svg('rect', {class: kind, x: 0, y: 4, width: x(layer.alone), height: 12}),
            svg('line', {class: 'mark', x1: x(layer.together), x2: x(layer.together), y1: 1, y2: 19})),
        html('span', {class: 'value'}, decibels(layer.alone), html('span', {class: 'quiet'}, percent(share(layer)))));
  };
  const list = at('#sensitivity .rows');
  if (layers.length === 0) return list.append(html('p', {}, 'No layer computes in integers.'));
  list.before(html(
      'div', {class: 'row axis'}, html('span', {}),
      html(
          'div', {class: 'ticks'},
          ...ticks.filter(db => x(db) < 97).map(db => html('span', {style: 'left:' + x(db) + '%'}, String(db)))),
      html('span', {class: 'value'}, html('span', {class: 'quiet'}, 'share'))));
  rows(list, layers, row, 20);
}

function speed() {
  // Conversions are steps of the node that they are for, or have no name.
  const steps = new Map();
  for (const kind of ['float', 'int8'])
    data.speed[kind].nodes.forEach((node, index) => {
      const name = node.name || node.op;
      if (!steps.has(name)) steps.set(name, {name, index});
      const step = steps.get(name), before = step[kind];
      step[kind] = before ? {
        ...node,
        op: before.op + ', ' + node.op,
        kernel: before.kernel + ', ' + node.kernel,
        ms: before.ms + node.ms
      } :
                            node;
    });
  const ms = node => node ? node.ms : 0, time = step => ms(step.float) + ms(step.int8);
  const longest = Math.max(...[...steps.values()].flatMap(step => [ms(step.float), ms(step.int8)]), 1e-9);
  at('#speed .measured').textContent = 'One sample in each run (batch ' + data.speed.batch + '), ' +
      plural(data.speed.threads, 'thread') + ', ' + data.speed.isa +
      ' kernels. Each layer is the median of nine runs with a clock around it; the totals above are the median of runs ' +
      'without such clocks. “–”: another step does this work too, or this model has no such layer.';
  const [unit, factor] = longest < 1 ? ['µs', 1000] : ['ms', 1];
  const number = node => node ? short(factor * node.ms, 3) : '–';
  const row = step => {
    const {float: real, int8} = step, op = (int8 || real).op;
    const text = (node, what) => node ?
        what + ': ' + number(node) + ' ' + unit + ', ' + node.op + ', ' + node.kernel + ', ' + node.dtype :
        what + ': not a separate step';
    return html(
        'div', {class: 'row', title: [step.name, text(real, 'float'), text(int8, 'int8')].join('\n')},
        label(step.name, op),
        svg('svg', {class: 'bar', viewBox: '0 0 100 20', preserveAspectRatio: 'none'},
            svg('rect', {class: 'real', x: 0, y: 3, width: 100 * ms(real) / longest, height: 6}),
            svg('rect', {class: 'good', x: 0, y: 11, width: 100 * ms(int8) / longest, height: 6})),
        html(
            'span', {class: 'value'}, number(real) + ' → ' + number(int8) + ' ' + unit,
            html('span', {class: 'quiet'}, real && int8 && int8.ms > 0 ? short(real.ms / int8.ms, 2) + '×' : '')));
  };
  const order = at('#speed select');
  order.onchange = () => rows(
      at('#speed .rows'),
      [...steps.values()].sort((a, b) => order.value === 'time' ? time(b) - time(a) : a.index - b.index), row, 20);
  order.onchange();
}

/** Values that lie in bins beyond the range, as a part of all. */
function clipped(tensor) {
  const {start, width, counts} = tensor.histogram;
  const outside =
      counts.filter((count, i) => start + i * width >= tensor.high || start + (i + 1) * width <= tensor.low);
  const all = sum(counts) + tensor.zeros;
  return all ? sum(outside) / all : 0;
}

function histogram(tensor, linear) {
  const {start, width, counts} = tensor.histogram;
  const left = Math.min(tensor.low, tensor.min), right = Math.max(tensor.high, tensor.max),
        margin = 0.02 * (right - left || 1);
  const x = value => 300 * (value - left + margin) / (right - left + 2 * margin || 1);
  const height = count => linear ? count : Math.log1p(count);
  const most = Math.max(...counts.map(height), 1e-9);
  const bars = counts.map((count, i) => {
    if (count === 0) return null;
    const from = start + i * width, to = from + width, tall = Math.max(1, 78 * height(count) / most);
    return svg(
        'rect', {
          class: from >= tensor.high || to <= tensor.low ? 'bad' : 'good',
          x: x(from),
          width: Math.max(0.7, x(to) - x(from) - 0.3),
          y: 86 - tall,
          height: tall
        },
        svg('title', {}, short(from) + ' to ' + short(to) + ': ' + plural(count, 'value')));
  });
  return svg(
      'svg', {class: 'histogram', viewBox: '0 0 300 90', preserveAspectRatio: 'none'},
      svg('rect', {class: 'range', x: x(tensor.low), width: x(tensor.high) - x(tensor.low), y: 0, height: 86}), ...bars,
      svg('line', {class: 'base', x1: 0, x2: 300, y1: 86.5, y2: 86.5}),
      ...[tensor.low, tensor.high].map(
          value =>
              svg('line', {class: 'threshold', x1: x(value), x2: x(value), y1: 0, y2: 86},
                  svg('title', {}, 'threshold ' + short(value)))));
}

function card(tensor, linear) {
  const weight = 'weight_of' in tensor, seen = 'histogram' in tensor;
  const tried = outcome.observers.find(choice => choice.tensor === tensor.name);
  const lost = seen ? clipped(tensor) : 0, all = seen ? sum(tensor.histogram.counts) + tensor.zeros : 0;
  const facts = [
    ['range of the integers', '[' + short(tensor.low) + ', ' + short(tensor.high) + ']'],
    seen ? ['seen', '[' + short(tensor.min) + ', ' + short(tensor.max) + ']'] : null,
    [tensor.grids > 1 ? 'largest scale of ' + tensor.grids : 'scale', short(tensor.scale, 5)],
    ['zero point', String(tensor.zero_point)],
    all ? ['zeros', percent(tensor.zeros / all)] : null,
    all ? ['clipped, about', percent(lost), lost > 0 ? 'bad' : ''] : null,
    ['observer', tensor.observer],
    weight ? ['weight of', tensor.weight_of] : null,
    !weight && tensor.members.length > 1 ? ['same integers', tensor.members.slice(1).join(', ')] : null,
    tried && !weight ?
        [
          'tried',
          tried.candidates.map(candidate => candidate.observer + ' ' + decibels(ratio(candidate.sqnr_db, 1))).join(', ')
        ] :
        null,
  ].filter(fact => fact !== null);
  return html(
      'article', {class: 'tensor'}, html('h3', {class: 'name'}, tensor.name),
      html(
          'div', {class: 'kind'},
          (weight ? 'weight, ' : 'activation, ') + tensor.dtype + (tensor.grids > 1 ? ', per channel' : '')),
      seen ? histogram(tensor, linear) : null,
      seen ? html(
                 'div', {class: 'ends'}, html('span', {}, short(Math.min(tensor.low, tensor.min), 3)),
                 html('span', {}, short(Math.max(tensor.high, tensor.max), 3))) :
             null,
      html('dl', {}, ...facts.flatMap(([name, value,
                                        kind]) => [html('dt', {}, name), html('dd', {class: kind || ''}, value)])));
}

function tensors() {
  const search = at('#tensors input'), [kind, scale] = document.querySelectorAll('#tensors select');
  const text = tensor => [tensor.name, tensor.observer, tensor.weight_of || '', ...(tensor.members || [])]
                             .join('\n')
                             .toLowerCase();
  const draw = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(word => word);
    const found = outcome.tensors.filter(
        tensor => (!kind.value || (kind.value === 'weight') === 'weight_of' in tensor) &&
            words.every(word => text(tensor).includes(word)));
    at('#tensors .found').textContent = plural(found.length, 'tensor');
    rows(at('#tensors .grid'), found, tensor => card(tensor, scale.value === 'linear'), 12);
  };
  for (const control of [search, kind, scale]) control.oninput = draw;
  draw();
}

at('#title').textContent = filename(data.files.float.name).replace(/\.onnx$/, '') + ' in int8';
document.title = at('#title').textContent + ' – qtensor report';
at('#subtitle').textContent = filename(data.files.int8.name) + ', calibrated with ' +
    plural(data.samples.calibrated, 'sample') +
    [['equalized', 'equalized'], ['bias_corrected', 'bias corrected'], ['rounding_learned', 'rounding learned']]
        .filter(([key]) => outcome[key])
        .map(([, words]) => ', ' + words)
        .join('') +
    '; ' + data.date;
totals();
sensitivity();
speed();
tensors();
table(
    at('#fused .table'), ['Node', 'Operator', 'Done by'], [0, 2],
    outcome.fused.map(node => [node.node, node.op, node.into]), 'Nothing.');
table(
    at('#float .table'), ['Node', 'Operator', 'Reason'], [0],
    outcome.float_nodes.map(node => [node.node, node.op, node.reason]), 'Nothing: every node computes in integers.');
at('#reproduce .commands').append(...data.commands.map(command => html('pre', {}, command)));
at('footer').textContent = 'qtensor ' + data.version + '. This page is one file and loads nothing.';
