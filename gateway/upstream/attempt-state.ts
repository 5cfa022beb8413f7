/**
 * State of an attempt. The result is delivered on the way into `Settled` or `Over`; later events are ignored.
 *
 *              connected           the answer begins
 *  Connecting ───────────▶ Waiting ───────────────▶ Answering
 *      │                      │                      │     │
 *      │                      │ backend has ended    │     │ answered, failed, interrupted, client left
 *      ├──────────────────────┴──────────┬───────────┘     ├───────────────▶ Settled
 *      │ (from each of the three)        ▼                 │ (from each)        │ backend has ended
 *      │                              Decoding ────────────┼──────────────▶   Over
 *      └───────────────────────────────────────────────────┘
 *
 * In `Decoding` the last bytes of a compressed answer are on their way; in `Settled` the backend may still end its answer.
 */
export type State = 'Connecting' | 'Waiting' | 'Answering' | 'Decoding' | 'Settled' | 'Over'
