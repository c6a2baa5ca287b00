package shop;

import java.util.ArrayList;
import java.util.List;

/** An invoice as the printer wants it. This file has CRLF line ends on purpose. */
public final class Invoice {
    private final List<String> rows = new ArrayList<>();
    private long totalCents = 0;

    public void add(String article, int quantity, long priceCents) {
        long sum = quantity * priceCents;
        rows.add(String.format("%-20s %4d %10.2f", article, quantity, sum / 100.0));
        totalCents += sum;
    }

    public long totalCents() {
        return totalCents;
    }

    public String print() {
        StringBuilder text = new StringBuilder();
        for (String row : rows) {
            text.append(row).append("\r\n");
        }
        return text.toString();
    }
}
