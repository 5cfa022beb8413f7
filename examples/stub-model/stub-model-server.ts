/** The stub model server as a program: the image `headgate/stub-model`, which examples/quickstart runs in a cluster. Its one argument is the port. */
import { startStubModel } from './stub-model.ts'

const DEFAULT_PORT = '8080'

const [port = DEFAULT_PORT] = process.argv.slice(2)
const stub = await startStubModel({ host: '0.0.0.0', port: Number(port), models: ['llama'] })
process.stdout.write(`the stub model server listens on port ${stub.port}\n`)
const stop = (): void => void stub.close()
process.once('SIGTERM', stop).once('SIGINT', stop)
