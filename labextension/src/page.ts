/** The script of a saved page: draws the report that lies in it, in place of its static tables. */

import css from '../style/report.css';
import { renderReport } from './report';

const NOTE = 'A saved page tries nothing: run the loop under %%ioscope to press these buttons.';
const data = document.getElementById('ioscope-report-data');
const place = document.getElementById('ioscope-report-static');

if (data && place) {
  // a report that cannot be read leaves the static tables where they are
  const report: unknown = JSON.parse(data.textContent ?? '');
  const style = document.createElement('style');
  style.textContent = css;
  document.head.append(style);
  const element = document.createElement('div');
  renderReport(element, report).setLink({ state: 'none', note: NOTE });
  place.replaceWith(element);
}
