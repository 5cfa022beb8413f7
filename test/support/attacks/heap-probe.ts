/** Loaded into an attacked gateway (`--import`): on SIGUSR2, writes the bytes of the heap after a forced garbage collection to `HEAP_FILE`. */
import { writeFileSync } from 'node:fs'

process.on('SIGUSR2', () => {
  globalThis.gc?.()
  globalThis.gc?.() // the first collection runs finalizers, and the second one frees their objects
  writeFileSync(process.env.HEAP_FILE ?? '', String(process.memoryUsage().heapUsed))
})
