/** One line for each folded section: what a reader would find there first. */

import type { IReport } from '../payload';
import { OWN_KINDS } from '../flame/reshape';
import { percentText } from '../flame/words';

const TRACKS = 4;

export function ceilingsGist(report: IReport): string {
  const lowest = report.ceilings.filter(row => row.limiting);
  const now = report.ceilingNow ? ` · ${report.ceilingNow.text}` : '';
  return lowest.map(row => `${row.label}: ${row.text}`).join(', ') + now;
}

export function timelineGist(report: IReport): string {
  const found = report.outliers.rows.length;
  const outliers = found ? [`${found} ${found === 1 ? 'batch' : 'batches'} stood out`] : [];
  const tracks = report.timeline.tracks.slice(0, TRACKS).map(row => `${row.label} ${row.value}`);
  return [...tracks, ...outliers].join(' · ');
}

/** The widest function of the user's own in the first graph. */
export function flameGist(report: IReport): string {
  const flame = report.flames[0];
  let best = -1;
  let widest = 0;
  flame?.name.forEach((name, index) => {
    const width = flame.x1[index] - flame.x0[index];
    if (OWN_KINDS.includes(flame.kinds[name]) && width >= widest) {
      best = index; // of equal ones the innermost: it says more
      widest = width;
    }
  });
  const own = best >= 0 ? `${flame.names[flame.name[best]]} ${percentText(widest)}` : '';
  return [flame?.label, own].filter(Boolean).join(': ');
}
