import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { describeProjection } from './projection.suite.ts'

describeProjection('MemoryProjection', async () => {
  const memory = new MemoryProjection()
  return { store: memory, source: memory }
})
