import { LabIcon } from '@jupyterlab/ui-components';

/** Bars of a profile, one of them limiting. */
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="3" y="4" width="18" height="4" rx="1"/>
    <rect x="3" y="16" width="12" height="4" rx="1"/>
  </g>
  <rect x="3" y="10" width="7" height="4" rx="1" fill="#d81b60"/>
</svg>`;

export const profileIcon = new LabIcon({ name: 'jupyter-ioscope:profile', svgstr: SVG });
