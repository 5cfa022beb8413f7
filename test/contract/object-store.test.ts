import { ObjectStore } from '../../standalone/object-store.ts'
import { describeKubePort } from './kube-port.suite.ts'

describeKubePort('ObjectStore', async () => ({ port: new ObjectStore(), namespace: 'shop' }))
