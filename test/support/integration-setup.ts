/** Starts the parts that all integration tests share, once per run: control plane and model server. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { ControlPlane, type ControlPlaneAddress } from './control-plane.ts'
import { ModelServerPart } from './model-server-part.ts'
import { makeRunFolder } from './run-folder.ts'
import { recordIssuedValues } from './secret-search.ts'

/** The value of `inject('lab')`, for `openLab`. */
export interface LabAddress {
  readonly ip: string
  readonly folder: string
  readonly controlPlane: ControlPlaneAddress
  readonly modelServer: { readonly url: string; readonly port: number }
}

declare module 'vitest' {
  export interface ProvidedContext {
    lab: LabAddress
    /** Path of the administrator's kubeconfig. */
    kubeconfig: string
  }
}

const DIST = join(import.meta.dirname, '../../dist')

/** Two projects name this file, each in a module graph of its own: the second one finds what the first one started here. */
const SHARED = 'HEADGATE_LAB'

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const shared = process.env[SHARED]
  if (shared !== undefined) {
    provide(project, JSON.parse(shared) as LabAddress) // written a few lines below
    return undefined
  }
  const ip = process.env.LAB_IP
  if (ip === undefined) throw new Error('the integration tests run in a network namespace of their own: use `make integration FILES=...`')
  const folder = makeRunFolder()
  cpSync(DIST, join(folder, 'dist'), { recursive: true, filter: (path) => !path.endsWith('images') }) // another build may replace the files during the run
  const [plane, model] = await Promise.all([ControlPlane.start(join(folder, 'control-plane'), ip), ModelServerPart.start(folder, ip)])
  const recording = new AbortController()
  recordIssuedValues(plane, folder, recording.signal)
  const lab = { ip, folder, controlPlane: plane.address, modelServer: { url: model.url, port: model.port } }
  process.env[SHARED] = JSON.stringify(lab)
  provide(project, lab)
  process.stdout.write(`lab: logs of all parts are in ${folder}\n`)
  return async () => {
    recording.abort()
    await Promise.all([plane.stop(), model.stop()])
  }
}

function provide(project: TestProject, lab: LabAddress): void {
  project.provide('lab', lab)
  project.provide('kubeconfig', join(lab.controlPlane.folder, 'admin.kubeconfig'))
}
