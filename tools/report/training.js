const {epochs, accuracies, files, best} = data;
const validated = epochs.some(epoch => epoch.validation_top1 !== null);
const quantized = accuracies.calibrated !== null;
const exact = part => (100 * part).toFixed(2) + '\u00a0%';

/** Round numbers that divide [low, high] in about `count` parts. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(candidate => candidate >= rough);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) list.push(i * step);
  return list;
}

const LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 26, HEIGHT = 260;

/** A line for each of `series`: {name, kind, value(epoch)}. Redrawn when the width changes, so that text keeps its size. */
function chart(id, series, text, marked) {
  const shown = series.filter(({value}) => epochs.some(epoch => value(epoch) !== null));
  at(id + ' .legend')
      .append(...shown.map(({name, kind}) => html('span', {}, html('i', {class: kind}), name)));
  const values = shown.flatMap(({value}) => epochs.map(value)).filter(value => value !== null);
  const parent = at(id + ' .chart');
  if (values.length === 0) return parent.append(html('p', {}, 'No epoch was trained in this run.'));
  const smallest = Math.min(...values), largest = Math.max(...values);
  const margin = 0.06 * (largest - smallest || Math.abs(largest) || 1);
  const low = Math.max(0, smallest - margin), high = largest + margin;
  const first = epochs[0].epoch, last = epochs.at(-1).epoch;
  const draw = () => {
    const width = Math.max(parent.clientWidth, 240);
    const x = epoch => LEFT + (width - LEFT - RIGHT) * (last > first ? (epoch - first) / (last - first) : 0.5);
    const y = value => TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low);
    const line = ({kind, value}) => svg('polyline', {
      class: 'line ' + kind,
      points: epochs.filter(epoch => value(epoch) !== null).map(epoch => x(epoch.epoch) + ',' + y(value(epoch))).join(' ')
    });
    const dot = ({name, kind, value}) => epochs.filter(epoch => value(epoch) !== null)
                                             .map(
                                                 epoch => svg(
                                                     'circle', {
                                                       class: kind,
                                                       cx: x(epoch.epoch),
                                                       cy: y(value(epoch)),
                                                       r: marked === name && epoch.epoch === best.epoch ? 6 : 2.5
                                                     },
                                                     svg('title', {},
                                                         name + ', epoch ' + epoch.epoch + ': ' + text(value(epoch)))));
    parent.replaceChildren(svg(
        'svg', {width, height: HEIGHT, role: 'img', 'aria-label': at(id + ' h2').textContent},
        ...ticks(low, high, 5).flatMap(value => [
          svg('line', {class: 'grid-line', x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value)}),
          svg('text', {x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end'}, text(value))
        ]),
        ...ticks(first, last, Math.min(10, width / 60)).filter(Number.isInteger).map(
            epoch => svg('text', {x: x(epoch), y: HEIGHT - 6, 'text-anchor': 'middle'}, String(epoch))),
        ...shown.map(line), ...shown.flatMap(dot)));
  };
  draw();
  window.addEventListener('resize', draw);
}

const top1 = accuracies.after;
const change = 100 * (top1 - accuracies.before);
at('#title').textContent =
    filename(files.before.name).replace(/\.onnx$/, '') + (quantized ? ', trained for int8' : ', trained');
document.title = at('#title').textContent + ' – qtensor report';
at('#subtitle').textContent = filename(files.after.name) + (data.interrupted ? ', stopped by Ctrl-C' : '') + '; ' + data.date;
at('#totals').append(
    figure(
        'Top-1', exact(top1), quantized ? 'in int8' : '', (change < 0 ? '−' : '+') + Math.abs(change).toFixed(2) + ' points',
        'on ' + data.judged),
    figure('Best epoch', String(best.epoch), '', exact(best.top1) + ' by the trainer'),
    figure('Before', exact(accuracies.before), quantized ? 'in float' : '',
        ...(quantized ? ['calibrated, not trained: ' + exact(accuracies.calibrated)] : [])),
    quantized ? figure(
                    'Size', short(files.before.bytes / files.after.bytes, 3) + '×', 'smaller',
                    bytes(files.before.bytes) + ' → ' + bytes(files.after.bytes)) :
                figure('Size', bytes(files.after.bytes), '', 'before ' + bytes(files.before.bytes)));

const training = {name: 'training', kind: 'real'}, validation = {name: 'validation', kind: 'good'};
chart(
    '#accuracy',
    [
      {...training, value: epoch => epoch.top1},
      {...validation, value: epoch => epoch.validation_top1},
    ],
    part => short(100 * part, 4) + ' %', validated ? 'validation' : 'training');
chart(
    '#loss',
    [
      {...training, value: epoch => epoch.loss},
      {...validation, value: epoch => epoch.validation_loss},
    ],
    loss => short(loss, 3));
chart('#rate', [{name: 'learning rate', kind: 'good', value: epoch => epoch.lr}], rate => short(rate, 3));
table(
    at('#epochs .table'),
    ['Epoch', 'Steps', 'Rate', 'Loss', 'Top-1', ...(validated ? ['Validation loss', 'Validation top-1'] : []), 'Seconds'],
    [],
    epochs.map(
        epoch =>
            [String(epoch.epoch), String(epoch.step), short(epoch.lr, 3), short(epoch.loss, 4), exact(epoch.top1),
             ...(validated ? [short(epoch.validation_loss, 4), exact(epoch.validation_top1)] : []),
             epoch.seconds.toFixed(2)]),
    'No epoch was trained in this run.');
table(at('#settings .table'), ['Setting', 'Value'], [], data.settings.map(({name, value}) => [name, value]), '');
at('#reproduce .commands').append(html('pre', {}, data.command));
at('footer').textContent = 'qtensor ' + data.version + '. This page is one file and loads nothing.';
