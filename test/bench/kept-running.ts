/** Restarts a program that ends, as a kubelet does, but at once, and counts the restarts. */
import type { Program } from '../support/program.ts'

/** Keeps one program running until `stop`. */
export class KeptRunning {
  readonly #program: Program
  #isStopped = false
  #restarts = 0

  /** @param program runs already */
  constructor(program: Program) {
    this.#program = program
    void this.#keep()
  }

  /** How often it had to be started again; an operator that loses its leadership ends, for one. */
  get restarts(): number {
    return this.#restarts
  }

  /** From now on the program may end. */
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
