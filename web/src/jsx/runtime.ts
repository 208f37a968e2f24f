// React's JSX functions as constants of a module: the bundler calls those by a letter, and what React exports as
// `(0,M.jsx)`, seven bytes more at each of a thousand elements. vite.config.ts puts this in React's place.
import { Fragment as fragment, jsx as one, jsxs as several } from "react/jsx-runtime";

export const Fragment = fragment;
export const jsx = one;
export const jsxs = several;
