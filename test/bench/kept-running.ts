/** Restarts a program whenever it ends, like a kubelet but without delay, and counts the restarts. */
import type { Program } from '../support/program.ts'

/** Keeps one program running until `stop`. */
export class KeptRunning {
  readonly #program: Program
  #isStopped = false
  #restarts = 0

  /** @param program a running program */
  constructor(program: Program) {
    this.#program = program
    void this.#keep()
  }

  /** Number of restarts. An operator ends, for example, when it loses its leadership. */
  get restarts(): number {
    return this.#restarts
  }

  /** From now on, the program stays stopped when it ends. */
  stop(): void {
    this.#isStopped = true
  }

  async #keep(): Promise<void> {
    for (;;) {
      await this.#program.process.ended
      if (this.#isStopped) return
      this.#restarts += 1
      await this.#program.launch()
    }
  }
}
