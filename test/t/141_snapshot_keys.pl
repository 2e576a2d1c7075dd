# Keys of every kind, alone, as the first and as the second part of a key, in chunks of three rows that four workers copy at once
# under writers that also change keys: what is ordered and compared by the server comes out whole.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $count = 40;
my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $seed = $ENV{CDC_SEED} // time();
note("seed $seed");
$source->{seed} = $seed;
$postgres->append_conf('max_worker_processes = 20', 'max_replication_slots = 20');
$postgres->append_conf('max_active_replication_origins = 20') if $postgres->major >= 18;
$postgres->restart;

# name => [ type, the key as an expression of NUM ]
my %kind = (
	enum => [ 'enum(' . join(', ', map { "'" . chr(122 - $_ % 26) . $_ . "'" } 0 .. $count - 1) . ')', 'NUM + 1' ],
	set => [ q{set('f', 'e', 'd', 'c', 'b', 'a')}, 'NUM' ],
	float => [ 'float', '(NUM - 20) * 0.1e0' ],
	double => [ 'double', '(NUM - 20) / 7e0' ],
	tiny => [ 'double', '(NUM - 20) / 7e15' ],    # more decimals than a DECIMAL has
	bit10 => [ 'bit(10)', 'NUM * 17' ],
	bit64 => [ 'bit(64)', '18446744073709551615 - NUM' ],
	tinyint => [ 'tinyint', 'NUM * 6 - 127' ],
	bigint => [ 'bigint', '(NUM - 20) * 400000000000000000' ],
	unsigned => [ 'bigint unsigned', '18446744073709551615 - cast(NUM as unsigned) * 300000000000000000' ],
	decimal => [ 'decimal(20,6)', '(NUM - 20) * 123456.789' ],
	date => [ 'date', q{date_add('1999-12-01', interval NUM * 31 day)} ],
	datetime => [ 'datetime(3)', q{date_add('1969-12-31 23:59:58', interval NUM * 250000 microsecond)} ],
	timestamp => [ 'timestamp(6)', q{date_add('2026-03-29 00:59:59.999990', interval NUM microsecond)} ],
	time => [ 'time(2)', q{sec_to_time((NUM - 20) * 3600.25)} ],
	year => [ 'year', '1950 + NUM' ],
	char => [ 'char(8)', q{concat(elt(1 + NUM % 5, 'a', 'B', 'ä ', 'É', 'z'), NUM, if(NUM % 3 = 0, '  ', ''))} ],
	varchar => [ 'varchar(20)', q{concat(if(NUM % 2, 'K', 'k'), ' ', char(97 + NUM % 20), NUM)} ],
	bin => [ 'varchar(20) collate utf8mb4_bin', q{concat(if(NUM < 20, 'K', 'k'), NUM % 20)} ],
	# the order of bytes is not the order of the server: '0000', 'aaaa', 'ZZZZ'
	general => [ 'varchar(20) collate utf8mb4_general_ci', q{concat(elt(1 + NUM % 6, 'ZZ', 'aa', '00', 'Éé', '~', 'zz'), NUM)} ],
	latin1 => [ 'varchar(20) character set latin1', q{concat(convert(elt(1 + NUM % 4, 'ö', 'o', 'ß', 'ÿ') using latin1), NUM)} ],
	ucs2 => [ 'varchar(10) character set ucs2', q{concat(convert(elt(1 + NUM % 3, 'ж', 'я', '中') using ucs2), NUM)} ],
	binary => [ 'binary(4)', q{unhex(lpad(hex(NUM * 4096), 8, '0'))} ],
	varbinary => [ 'varbinary(8)', q{concat(char(255 - NUM), unhex(repeat('00', NUM % 4)))} ],
	quoted => [ 'varchar(20)', q{concat('it''s \\\\\\\\', NUM, '"`')} ],
);
if ($source->is_mariadb)
{
	$kind{uuid} = [ 'uuid', q{concat(lpad(hex(NUM * 7919), 8, '0'), '-1234-1234-1234-', lpad(hex(100 - NUM), 12, '0'))} ];
	$kind{inet6} = [ 'inet6', q{concat('2001:db8::', hex(NUM * 99))} ];
}

# KIND's key of number NUM
sub key { my ($kind, $number) = @_; (my $text = $kind{$kind}[1]) =~ s/NUM/$number/g; return $text; }

$source->sql('create database shop');
my @tables;
for my $kind (sort keys %kind)
{
	my $type = $kind{$kind}[0];
	my $rest = 'num int not null, v int not null default 0';
	my $end = 'default charset utf8mb4';
	push @tables, map { "${kind}_$_" } qw(alone first second);
	$source->sql("create table shop.${kind}_alone (k $type not null primary key, $rest) $end",
		"create table shop.${kind}_first (g smallint not null, $rest, k $type not null, primary key (k, g)) $end",
		"create table shop.${kind}_second (k $type not null, g smallint not null, $rest, primary key (g, k)) $end");
	my $dbh = $source->dbh;
	$dbh->do("set sql_mode = ''");
	$dbh->do("insert into shop.${kind}_alone (k, num) values " . join(', ', map { '(' . key($kind, $_) . ", $_)" } 0 .. $count - 1));
	for my $place (qw(first second))
	{
		$dbh->do("insert into shop.${kind}_$place (k, g, num) values " . join(', ', map { my $n = $_; map { '(' . key($kind, $n) . ", $_, $n)" } -1 .. 1 } 0 .. $count / 2 - 1));
	}
}

# M2: the ends of the range, whose difference does not fit into 64 bits
my %ends = (m2_unsigned => [ 'bigint unsigned', 1, '9223372036854775813', '18446744073709551615', 0, 2 ], m2_signed => [ 'bigint', '-9223372036854775808', '9223372036854775807', -1, 0, '-9223372036854775807' ]);
for my $table (sort keys %ends)
{
	my ($type, @keys) = @{ $ends{$table} };
	$source->sql("create table shop.$table (k $type primary key)", "insert into shop.$table values " . join(', ', map { "($_)" } @keys));
}

# One random change; a key that is taken is no matter.
sub change
{
	my ($dbh) = @_;
	$dbh->do("set sql_mode = ''") unless $dbh->{private_is_set}++;
	my $table = $tables[ rand @tables ];
	my ($kind, $place) = split(/_/, $table);
	my ($from, $to) = map { int(rand($count)) } 1, 2;
	my ($g, $v) = (int(rand(3)) - 1, int(rand(1e6)));
	my $and = $place eq 'alone' ? '' : " and g = $g";
	my @ways = (
		"update shop.$table set v = $v where num = $from$and",
		"delete from shop.$table where num = $from$and",
		"update ignore shop.$table set k = " . key($kind, $to) . ", num = $to, v = $v where num = $from$and",
		$place eq 'alone' ? "replace into shop.$table (k, num, v) values (" . key($kind, $to) . ", $to, $v)"
		: "replace into shop.$table (k, g, num, v) values (" . key($kind, $to) . ", $g, $to, $v)");
	my $ok = eval { $dbh->do($ways[ rand @ways ]); 1; };
	die $@ unless $ok || $@ =~ /(deadlock|duplicate|lock wait|record has changed)/i;
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres,
	options => '{"snapshot_chunk_rows": 3, "snapshot_workers": 4}')->setup;

# at rest: only the copy brings rows, and no row comes twice
$pipeline->start->wait_for_tables->wait_for_catchup;
is($pipeline->status('tables_stopped'), 0, 'no table is stopped');
$pipeline->is_same('S5: string keys that the server orders otherwise than by bytes, BINARY and all other keys: copied at rest');
$pipeline->is_same('M2: the ends of the range of an integer key', sort keys %ends);
is($postgres->psql(q{select sum(rows_copied) from pg_stat_cdc_snapshot where source_table not like 'm2%'}), scalar(@tables) / 3 * ($count + 2 * 3 * $count / 2), 'S5: each row was read once, in a chunk of the size that was planned');
cmp_ok($postgres->psql(q{select min(chunks) from pg_stat_cdc_snapshot where source_table not like 'm2%'}), '>', $count / 3 - 1, 'in many chunks');
$pipeline->stop->drop->drop_target;

$source->start_writers(6, \&change);
$pipeline->start->wait_for_tables;
$source->stop_writers;
$pipeline->wait_for_catchup;
is($pipeline->status('tables_stopped'), 0, 'under writers: no table is stopped') or diag($pipeline->describe);
$pipeline->is_same('S5: copied under writers');

done_testing();
