// Package parcel decides how an order travels.
package parcel

import "errors"

// ErrTooHeavy is returned for parcels that no carrier takes.
var ErrTooHeavy = errors.New("parcel is too heavy")

// Parcel is what leaves the warehouse. Weight is in grams.
type Parcel struct {
	ID      string
	Weight  int
	Express bool
}

// Price returns the price in cents.
func Price(parcel Parcel) (int, error) {
	if parcel.Weight > 30000 {
		return 0, ErrTooHeavy
	}
	price := 490
	if parcel.Weight > 5000 {
		price += 300
	}
	if parcel.Express {
		price *= 2
	}
	return price, nil
}

// Total returns the price of all parcels in cents.
func Total(parcels []Parcel) (int, error) {
	total := 0
	for _, parcel := range parcels {
		price, err := Price(parcel)
		if err != nil {
			return 0, err
		}
		total += price
	}
	return total, nil
}
