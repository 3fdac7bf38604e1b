/** Types of etude/npy, by hand: checked as those of the package are. */

import type { Source, Tensor } from "./index.js";

/** The tensor in a `.npy`. Throws ArgumentError for what is none, is cut short, big-endian, or of a dtype that tensors don't have. */
export function readNpy(source: Source): Promise<Tensor>;
/** The tensors in a `.npz`, by name. */
export function readNpz(source: Source): Promise<Map<string, Tensor>>;
/** A tensor as the bytes of a `.npy`. Throws NotSupportedError for dtypes that numpy has not (bfloat16, float8). */
export function writeNpy(tensor: Tensor): Uint8Array<ArrayBuffer>;
