/** Kept equal to package.json and the Python package by a test. */
export const VERSION = '0.1.0';
