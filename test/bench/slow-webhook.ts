/** An admission webhook that admits everything in one namespace, ten seconds late: Secrets and statuses there take as long. */
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ControlPlane } from '../support/control-plane.ts'
import { certificate, closeAll } from '../support/crash-proxy.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import { listening } from '../support/listening.ts'

export const SLOW_MS = 10_000
const API = 'admissionregistration.k8s.io/v1'
const KIND = 'ValidatingWebhookConfiguration'
const NAME = 'bench-slow'

/** @returns removes the webhook */
export async function slowWebhook(plane: ControlPlane, namespace: string): Promise<() => Promise<void>> {
  const { key, cert, ca } = await certificate(plane)
  const server = createServer({ key, cert }, (request, response) => {
    void admit(request).then((review) => response.setHeader('content-type', 'application/json').end(review))
  })
  const { ip } = plane.address
  await plane.admin.create(manifest(namespace, `https://${ip}:${await listening(server, ip)}/`, ca))
  return async () => {
    await plane.admin.remove(objectPath(API, KIND, NAME))
    closeAll(server)
  }
}

async function admit(asking: IncomingMessage): Promise<string> {
  const { request } = JSON.parse(await text(asking)) as { readonly request: { readonly uid: string } } // an AdmissionReview
  await sleep(SLOW_MS)
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: request.uid, allowed: true } })
}

function manifest(namespace: string, url: string, ca: Buffer): TestObject {
  const rule = (apiGroups: string, resources: string, operations: string) => ({
    ...{ apiGroups: [apiGroups], apiVersions: ['*'], resources: [resources], operations: [operations], scope: 'Namespaced' },
  })
  const webhook = {
    name: 'slow.bench.headgate.dev',
    clientConfig: { url, caBundle: ca.toString('base64') },
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    rules: [rule('', 'secrets', 'CREATE'), rule('headgate.dev', 'apikeys/status', 'UPDATE')],
    ...{ failurePolicy: 'Ignore', sideEffects: 'None', timeoutSeconds: 30, admissionReviewVersions: ['v1'] },
  }
  return { apiVersion: API, kind: KIND, metadata: { name: NAME }, webhooks: [webhook] }
}
