import { readFileSync } from "node:fs"
import { join } from 'node:path'
import { startBench, LOAD_CORE } from './contenders.ts'
import { runInside } from './inside.ts'
import { CELLS } from './cells.ts'
import { runLoad } from './wrk.ts'
import { cpuMs, memory } from './proc.ts'
process.exitCode = await runInside(import.meta.filename, async ({ ip, folder }) => {
  const names = (process.env.WHO ?? 'gateway').split(',') as any
  const b = await startBench({ ip, folder, gatewayBundle: process.env.BUNDLE ?? join(folder, 'dist/gateway.js'), gatewayFlags: (process.env.FLAGS ?? '').split(' ').filter(Boolean) })
  const cell = CELLS.find((c) => c.name === (process.env.CELL ?? '1.5k-c32'))!
  for (let r = 0; r < Number(process.env.R ?? 3); r++) for (const n of names) {
    const c = b.contenders.get(n)!
    const pids = c.pids(cell.kind); const before = cpuMs(pids)
    const res = await runLoad({ url: c.url(cell.kind), connections: cell.connections, seconds: Number(process.env.S ?? 3), bodyFile: b.files.body(cell), keysFile: b.files.keys(cell) }, LOAD_CORE)
    const st=(p:number)=>readFileSync(`/proc/${p}/stat`,"utf8").split(") ")[1]!.split(" "); console.log(pids.map((p)=>`u${st(p)[11]} s${st(p)[12]}`).join(), n, ((cpuMs(pids) - before) * 1000 / res.requests).toFixed(1), Math.round(res.requests / res.seconds), res.p50Ms, res.p99Ms, memory(pids).rssMb.toFixed(0), res.broken, res.refused)
  }
  await b.stop()
  console.log(folder)
  return 0
})
