// Width of a character of the report's small text, in CSS pixels: digits of common sans-serif faces
// at 12 px are 6.7 wide. Measuring each text would force a layout for each.
const CHARACTER_PX = 6.9;
const MARGIN_PX = 6;

export function textFits(text: string, width_px: number): boolean {
  return width_px >= text.length * CHARACTER_PX + MARGIN_PX;
}
