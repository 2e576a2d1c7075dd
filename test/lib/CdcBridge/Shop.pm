package CdcBridge::Shop;

# The small shop that the demo and the tests mirror: 6 tables with keys of several kinds (auto_increment, composite with an
# enum, text, binary) and everyday types, filled with made-up rows, and a writer that changes them at random.

use strict;
use warnings;

use Exporter qw(import);
our @EXPORT_OK = qw(create_shop fill_shop change_shop change_hot create_hot);

my @TABLES = (
	q{create table shop.customer (
	id int unsigned not null auto_increment primary key,
	email varchar(120) not null unique,
	name varchar(100) not null,
	birthday date,
	vip tinyint(1) not null default 0,
	balance decimal(12,2) not null default 0.00,
	settings json,
	created_at datetime(3) not null) default charset utf8mb4},
	q{create table shop.address (
	customer_id int unsigned not null,
	kind enum('billing','shipping','other') not null,
	street varchar(200) not null,
	city varchar(80) not null,
	zip char(10),
	country char(2) not null,
	primary key (customer_id, kind)) default charset utf8mb4},
	q{create table shop.product (
	sku varchar(20) not null primary key,
	title varchar(200) not null,
	description text,
	price decimal(10,2) not null,
	weight double,
	stock int not null,
	labels set('new','sale','eco') not null default '',
	picture blob) default charset utf8mb4},
	q{create table shop.orders (
	id bigint unsigned not null auto_increment primary key,
	customer_id int unsigned not null,
	status enum('open','paid','sent','returned') not null default 'open',
	total decimal(14,4) not null,
	note text,
	placed_at timestamp(6) not null default current_timestamp(6),
	key (customer_id)) default charset utf8mb4},
	q{create table shop.order_item (
	order_id bigint unsigned not null,
	line smallint unsigned not null,
	sku varchar(20) not null,
	quantity mediumint not null,
	unit_price decimal(10,2) not null,
	primary key (order_id, line)) default charset utf8mb4},
	q{create table shop.payment (
	uid binary(16) not null primary key,
	order_id bigint unsigned not null,
	method enum('card','transfer','cash') not null,
	amount decimal(14,4) not null,
	fee float,
	paid_on date not null,
	paid_at time not null,
	season year) default charset utf8mb4},
);

sub create_shop
{
	my ($source) = @_;
	return $source->sql('create database if not exists shop', @TABLES);
}

# Fill the tables: ROWS orders and what belongs to them, about 4.3 rows in all for each order.
sub fill_shop
{
	my ($source, $rows) = @_;
	my $customers = int($rows / 5) || 1;
	my $products = int($rows / 20) || 1;
	# numbers 0 .. rows-1, in a schema that nobody mirrors
	$source->sql('create database if not exists helper', 'drop table if exists helper.n', 'create table helper.n (n int primary key)',
		"insert into helper.n select n from (select a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d + 100000 * f.d n from "
		  . join(' cross join ', map { '(select 0 d' . join('', map { " union all select $_" } 1 .. 9) . ") $_" } qw(a b c d e f))
		  . ") x where n < $rows");
	$source->sql(
		"insert into shop.customer select n + 1, concat('customer', n, '\@shop.example'), concat('Zoë Müller ', n), "
		  . "date_add('1950-01-01', interval n % 20000 day), n % 7 = 0, (n % 100000) / 100 - 200, "
		  . "json_object('lang', elt(1 + n % 3, 'de', 'en', 'tr'), 'n', n, 'news', n % 2), date_add('2020-01-01', interval n * 37 second) "
		  . "from helper.n where n < $customers",
		"insert into shop.address select n + 1, elt(k, 'billing', 'shipping', 'other'), concat(n, ' Long Street'), concat('City ', n % 500), "
		  . "lpad(n % 100000, 5, '0'), elt(1 + n % 3, 'DE', 'GB', 'TR') from helper.n "
		  . "cross join (select 1 k union all select 2 union all select 3) k where n < $customers and (k = 1 or n % k = 0)",
		"insert into shop.product select concat('SKU-', lpad(n, 7, '0')), concat('Product ', n), repeat(sha2(n, 256), 1 + n % 4), n % 9999 / 100 + 1, "
		  . "if(n % 10 = 0, null, n / 7), n % 1000, n % 8, unhex(sha2(n, 256)) from helper.n where n < $products",
		"insert into shop.orders select n + 1, 1 + n % $customers, 1 + n % 4, (n % 1000000) / 7, if(n % 3 = 0, null, concat('note ', n)), "
		  . "date_add('2024-01-01', interval n * 1234567 microsecond) from helper.n",
		"insert into shop.order_item select n + 1, k, concat('SKU-', lpad((n * 13 + k) % $products, 7, '0')), 1 + n % 9, n % 9999 / 100 + 1 "
		  . "from helper.n cross join (select 1 k union all select 2) k",
		"insert into shop.payment select unhex(left(sha2(concat('p', n), 256), 32)), n + 1, 1 + n % 3, (n % 1000000) / 7, n % 100 / 8, "
		  . "date_add('2024-01-01', interval n % 800 day), sec_to_time(n % 86400), 2020 + n % 10 from helper.n where n % 5 <> 0",
		'drop table helper.n');
	return $source;
}

sub pick { return $_[ int(rand(@_)) ]; }

# One random transaction on the shop, the data of which was filled with ROWS orders.
sub change_shop
{
	my ($dbh, $rows) = @_;
	my $order = 1 + int(rand($rows * 1.1));
	my $customer = 1 + int(rand($rows / 5));
	my $sku = sprintf('SKU-%07d', rand($rows / 20));
	my $unique = sprintf('%d-%d-%d', $$, time(), rand(1e9));
	my @changes = (
		sub {
			$dbh->do("insert into shop.orders (customer_id, status, total, note) values ($customer, 'open', rand() * 1000, 'new ☃')");
			my $id = $dbh->last_insert_id(undef, undef, undef, undef);
			$dbh->do("insert into shop.order_item values ($id, $_, '$sku', $_, 9.99)") for 1 .. 1 + int(rand(3));
		},
		sub { $dbh->do("update shop.orders set status = '" . pick(qw(paid sent returned)) . "', note = if(rand() < 0.2, null, note) where id = $order"); },
		sub { $dbh->do("update shop.product set stock = stock - 1, labels = '" . pick('', 'new', 'sale,eco') . "' where sku = '$sku'"); },
		sub {
			$dbh->do("delete from shop.order_item where order_id = $order");
			$dbh->do("delete from shop.orders where id = $order");
		},
		sub { $dbh->do("insert into shop.customer (email, name, settings, created_at) values ('$unique\@x.example', 'Ann', '{\"a\": [1, 2.5]}', now(3))"); },
		sub { $dbh->do("update shop.customer set balance = balance + 1.25, email = '$unique\@y.example' where id = $customer"); },
		sub { $dbh->do("update shop.orders set id = id + 1000003 where id = $order"); },
		sub { $dbh->do("update shop.address set kind = 'other', city = 'Köln' where customer_id = $customer and kind = 'shipping'"); },
		sub { $dbh->do("delete from shop.address where customer_id = $customer and kind = 'other'"); },
		sub { $dbh->do("insert into shop.payment values (unhex(left(sha2('$unique', 256), 32)), $order, 'card', rand() * 100, rand(), current_date, current_time, 2026)"); },
		sub { $dbh->do("update shop.payment set fee = fee * 1.1 where order_id = $order"); },
	);
	_transaction($dbh, map { pick(@changes) } 1 .. 1 + int(rand(4)));
}

# Small tables where every key is hot: what one transaction does, another undoes at once.
sub create_hot
{
	my ($source, $rows) = @_;
	return $source->sql('create database if not exists shop',
		'create table shop.hot_int (id int primary key, n int not null, s varchar(60)) default charset utf8mb4',
		"create table shop.hot_text (k varchar(20) not null primary key, n int not null) default charset utf8mb4 collate utf8mb4_general_ci",
		"create table shop.hot_pair (a smallint not null, b enum('x', 'y', 'z') not null, n int not null, primary key (a, b))",
		map { ("insert into shop.hot_int values ($_, 0, 'start')", "insert into shop.hot_text values ('k$_', 0)", "insert into shop.hot_pair values ($_, 'y', 0)") }
		  1 .. $rows);
}

# One random transaction on the hot tables: insert, update, delete, and changes of keys to free and to used ones.
sub change_hot
{
	my ($dbh, $rows) = @_;
	my $one = sub {
		my ($a, $b) = map { 1 + int(rand($rows * 1.5)) } 1, 2;
		my $n = int(rand(1e6));
		my $letter = pick(qw(x y z));
		# the same key in another case: equal to a _ci key, different in bytes
		my $k = pick("k$a", "K$a");
		$dbh->do(
			pick(
				"replace into shop.hot_int values ($a, $n, 'r')",
				"insert into shop.hot_int values ($a, $n, 'i') on duplicate key update n = $n",
				"update shop.hot_int set n = $n, s = repeat('é', $n % 50) where id = $a",
				"delete from shop.hot_int where id = $a",
				"update ignore shop.hot_int set id = $b where id = $a",
				"replace into shop.hot_text values ('$k', $n)",
				"update shop.hot_text set n = $n, k = '$k' where k = '$k'",
				"delete from shop.hot_text where k = '$k'",
				"update ignore shop.hot_text set k = 'k$b' where k = 'k$a'",
				"replace into shop.hot_pair values ($a, '$letter', $n)",
				"update ignore shop.hot_pair set b = '$letter', n = $n where a = $a",
				"delete from shop.hot_pair where a = $a and b = '$letter'"));
	};
	_transaction($dbh, ($one) x (1 + int(rand(4))));
}

# Run CODEs as one transaction, some of them rolled back; a collision with another writer is no matter.
sub _transaction
{
	my ($dbh, @code) = @_;
	my $ok = eval {
		$dbh->begin_work;
		$_->() for @code;
		rand() < 0.1 ? $dbh->rollback : $dbh->commit;
		1;
	};
	return if $ok;
	my $error = $@;
	eval { $dbh->rollback };
	die $error unless $error =~ /(deadlock|duplicate|lock wait|record has changed)/i;
}

1;
