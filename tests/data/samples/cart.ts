// A cart in the browser: lines, their sum, and what is written to storage.

export interface CartLine {
  article: string;
  priceCents: number;
  quantity: number;
}

export class Cart {
  private lines: CartLine[] = [];

  add(line: CartLine): void {
    const known = this.lines.find((other) => other.article === line.article);
    if (known) {
      known.quantity += line.quantity;
    } else {
      this.lines.push({ ...line });
    }
  }

  remove(article: string): void {
    this.lines = this.lines.filter((line) => line.article !== article);
  }

  get totalCents(): number {
    return this.lines.reduce((sum, line) => sum + line.priceCents * line.quantity, 0);
  }

  toJSON(): string {
    return JSON.stringify(this.lines);
  }
}

export function formatCents(cents: number): string {
  const whole = Math.trunc(cents / 100);
  const rest = String(Math.abs(cents % 100)).padStart(2, "0");
  return `${whole}.${rest} €`;
}
