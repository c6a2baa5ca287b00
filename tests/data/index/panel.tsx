import React, { useMemo, useState } from "react";
import { Article } from "./warehouse";
import { Button, Table as Grid } from "../ui";

export interface PanelProps<T> {
  title: string;
  rows: T[];
  onPick?: (row: T) => void;
}

type State = { open: boolean; größe: number };

/** One row of the panel. */
function Row({ article }: { article: Article }): JSX.Element {
  return <tr><td>{article.name}</td></tr>;
}

export const Panel = <T extends Article>({ title, rows, onPick }: PanelProps<T>) => {
  const [state, setState] = useState<State>({ open: true, größe: 1 });
  const sorted = useMemo(() => [...rows].sort(byName), [rows]);
  return (
    <Grid caption={title}>
      {sorted.map((row) => <Row key={row.id} article={row} />)}
      <Button onClick={() => setState({ ...state, open: false })}>Schließen</Button>
    </Grid>
  );
};

const byName = (a: Article, b: Article): number => a.name.localeCompare(b.name);

export class Boundary extends React.Component<{ children: React.ReactNode }, State> {
  state: State = { open: true, größe: 2 };
  static getDerivedStateFromError(): State {
    return { open: false, größe: 0 };
  }
  render() {
    return this.state.open ? this.props.children : <Panel title="leer" rows={[]} />;
  }
}

export default Panel;
