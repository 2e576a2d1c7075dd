package Bench;

# What the benches share: settings, servers, the table that is measured, loads of changes, and a place for results.
#
#   my $bench = Bench->new('snapshot');
#   $bench->start_servers;
#   for my $round ($bench->rounds) { $bench->take_turns($round, pipe => sub { ...; return ($rows, $seconds) }, ...); }
#   $bench->ratio('pipeline against pipe', 'pipeline', 'pipe', 0.9);
#   $bench->finish;
#
# The table's rows are a function of a key and a version that MySQL, MariaDB and PostgreSQL compute alike (row_source,
# row_target). So a load is a list of (transaction, operation, key, version) that each side has in a table of its own, and
# the source, COPY and the direct loop write the same rows without one having to read the other's.

use strict;
use warnings;

use Bench::Session;
use CdcBridge::Env qw(new_folder tree);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Exporter qw(import);
use JSON::PP ();
use Time::HiRes qw(time);

our @EXPORT_OK = qw(checksum_source checksum_target run_shell);

# column => [ type at the source, expression there, expression in PostgreSQL ]; in both ID is the key and V the version
my @COLUMNS = (
	[ 'id', 'bigint not null primary key', 'ID', 'ID' ],
	[ 'a', 'int not null', '(ID * 7 + V) % 1000000', '((ID * 7 + V) % 1000000)::int' ],
	[ 'b', 'bigint', 'if((ID + V) % 10 = 0, null, ID * 1000003 + V)', 'case when (ID + V) % 10 <> 0 then ID * 1000003 + V end' ],
	[ 'price', 'decimal(12,2) not null', '((ID * 31 + V * 17) % 100000000) / 100', '(((ID * 31 + V * 17) % 100000000)::numeric / 100)::numeric(12,2)' ],
	[ 'name', 'varchar(40) not null', "concat('item ', ID, ', v', V)", "'item ' || ID || ', v' || V" ],
	[ 'note', 'text', "if(ID % 10 = 3, null, left(sha2(concat(ID, '-', V), 256), 32))",
		"case when ID % 10 <> 3 then left(encode(sha256(convert_to(ID || '-' || V, 'UTF8')), 'hex'), 32) end" ],
	[ 'made', "timestamp not null default '2024-01-01 00:00:00'", "timestampadd(second, (ID * 37 + V) % 30000000, '2024-01-01 00:00:00')",
		"timestamptz '2024-01-01 00:00:00+00' + ((ID * 37 + V) % 30000000) * interval '1 second'" ],
	[ 'ratio', 'double not null', '(ID + V) / 8e0', '(ID + V) / 8::float8' ],
	[ 'flag', 'tinyint not null', '(ID + V) % 2', '((ID + V) % 2)::smallint' ],
);

sub new
{
	my ($class, $name) = @_;
	my $self = bless {
		name => $name,
		rows => $ENV{BENCH_ROWS} || 200_000,
		rounds => $ENV{BENCH_ROUNDS} || 3,
		tx_rows => $ENV{BENCH_TX_ROWS} || 100,
		out => $ENV{BENCH_OUT} // tree() . '/build/bench',
		unit => 'rows',
		series => {},
		order => [],
		ratios => [],
		values => [],
		checks => [],
		skipped => [],
		started => time(),
	}, $class;
	$| = 1;
	return $self;
}

sub rows { return $_[0]{rows}; }
sub rounds { return 1 .. $_[0]{rounds}; }
sub folder { my ($self) = @_; return $self->{folder} //= new_folder('bench'); }
sub source { return $_[0]{source}; }
sub postgres { return $_[0]{postgres}; }
sub pipeline { return $_[0]{pipeline}; }
sub session { return $_[0]{session}; }
sub program { my ($self, $name) = @_; return "$self->{out}/$name"; }
sub direct_module { my ($self) = @_; return "$self->{out}/direct-pg" . $self->postgres->major . '/direct.so'; }
sub say_what { my ($self, $what) = @_; printf "# %-9s %s\n", $self->{name}, $what; return; }

# ---- servers

# Source options for data that fits into memory: what is measured is not the source's disk.
sub source_args
{
	my ($self) = @_;
	return ('--default-time-zone=+00:00') if $self->rows <= 50_000;
	return ('--default-time-zone=+00:00', '--innodb-buffer-pool-size=1G', ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql' ? '--innodb-redo-log-capacity=1G' : '--innodb-log-file-size=512M');
}

# A source and a PostgreSQL, and a pipeline (set up, not started) for all tables of schema bench. fsync is on, as users have
# it; no checkpoint and no vacuum fall into a measurement by themselves.
sub start_servers
{
	my ($self, %option) = @_;
	$self->{source} = CdcBridge::Source->new(args => [ $self->source_args ]);
	$self->_make_postgres(%option);
	my ($file, $offset) = $self->source->binlog_position;
	$self->{origin} = [ $file, $offset ];
	$self->source->sql('create database bench', 'create database helper');
	$self->{pipeline} = CdcBridge::Pipeline->new(source => $self->source, postgres => $self->postgres, name => 'bench', server => 'bench_source',
		schema => 'bench', tables => '{bench.*}', options => $ENV{BENCH_OPTIONS})->setup;
	$self->{session} = Bench::Session->new($self->postgres);
	$self->postgres->psql('create schema benchop');
	$self->say_what(sprintf('%s, %s, %d rows, %d rounds', $self->postgres->{version}, $self->source->query_value('select version()'), $self->rows, $self->{rounds}));
	return $self;
}

sub _make_postgres
{
	my ($self, %option) = @_;
	$self->{postgres} = CdcBridge::Postgres->new(conf => join("\n", 'fsync = on', 'max_wal_size = 16GB', 'checkpoint_timeout = 1h',
		'autovacuum = off', 'shared_buffers = ' . ($self->rows > 50_000 ? '1GB' : '128MB'), $option{conf} // ''));
	return;
}

# A PostgreSQL alone, with a schema bench: for what has to do with no source.
sub start_postgres
{
	my ($self, %option) = @_;
	$self->_make_postgres(%option);
	$self->postgres->psql('create schema bench');
	$self->say_what(sprintf('%s, %d rows, %d rounds', $self->postgres->{version}, $self->rows, $self->{rounds}));
	return $self;
}

# ---- the table

sub row_source { my ($id, $version) = @_; return join(', ', map { _fill($_->[2], $id, $version) } @COLUMNS); }
sub row_target { my ($id, $version) = @_; return join(', ', map { _fill($_->[3], $id, $version) . " as $_->[0]" } @COLUMNS); }
sub assign_source { my ($table, $id, $version) = @_; return join(', ', map { "$table.$_->[0] = " . _fill($_->[2], $id, $version) } @COLUMNS[ 1 .. $#COLUMNS ]); }
sub columns { return map { $_->[0] } @COLUMNS; }

sub _fill
{
	my ($expression, $id, $version) = @_;
	$expression =~ s/\bID\b/$id/g;
	$expression =~ s/\bV\b/$version/g;
	return $expression;
}

# Table bench.NAME with keys 1 .. ROWS in version 0, in one transaction.
sub create_table
{
	my ($self, $name, $rows) = @_;
	$self->source->sql("create table bench.$name (" . join(', ', map { "$_->[0] $_->[1]" } @COLUMNS) . ') default charset utf8mb4');
	$self->fill_table($name, 1, $rows) if $rows;
	return $self;
}

sub fill_table
{
	my ($self, $name, $first, $rows) = @_;
	$self->create_numbers;
	$self->source->sql("insert into bench.$name select " . row_source("(n.n + $first)", 0)
		  . " from (select lo.n + 10000 * hi.n n from helper.digit hi straight_join helper.digit lo where hi.n * 10000 < $rows) n where n.n < $rows");
	return $self;
}

# 0 .. 9999 in a table that is in no log; two of them make 100 million
sub create_numbers
{
	my ($self) = @_;
	return if $self->{has_numbers}++;
	my $dbh = $self->source->connect;
	$dbh->do('set sql_log_bin = 0');
	$dbh->do('create table helper.digit (n int primary key)');
	$dbh->do('insert into helper.digit select a.d + 10 * b.d + 100 * c.d from ' . join(' cross join ', map { '(select 0 d' . join('', map { " union all select $_" } 1 .. 9) . ") $_" } qw(a b c)));
	$dbh->do("insert into helper.digit select n + 1000 * $_ from helper.digit where n < 1000") for 1 .. 9;
	return;
}

my %CANONICAL = (
	price => [ 'price', 'price' ],
	made => [ "date_format(made, '%Y-%m-%d %H:%i:%s')", "to_char(made at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')" ],
	ratio => [ 'cast(ratio * 8 as signed)', '(ratio * 8)::bigint' ],
	map({ $_ => [ "coalesce($_, '~')", "coalesce($_\::text, '~')" ] } qw(b note)),
);

sub _canonical { my ($side) = @_; return join(', ', map { $CANONICAL{$_} ? $CANONICAL{$_}[$side] : $_ } columns()); }

# count:sum over all rows, where the sum is made of a hash of each whole row
sub checksum_source
{
	my ($source, $table) = @_;
	return $source->query_value("select concat(count(*), ':', coalesce(sum(cast(conv(left(sha2(concat_ws('|', " . _canonical(0) . "), 256), 8), 16, 10) as unsigned)), 0)) from $table");
}

sub checksum_target
{
	my ($postgres, $table) = @_;
	return $postgres->psql("select count(*) || ':' || coalesce(sum(('x' || left(encode(sha256(convert_to(concat_ws('|', " . _canonical(1) . "), 'UTF8')), 'hex'), 8))::bit(32)::bigint), 0) from $table");
}

# ---- loads

# Operations on table item. KIND: insert (new keys, ascending), update, delete (random keys), mixed (60/30/10, random keys, 1 to
# 10 rows in a transaction, no key twice in one), hot (95 % updates of 1,000 keys, the others random). Returns the number of
# transactions. @{$self->{live}} holds the keys that exist.
sub make_load
{
	my ($self, $kind, $count) = @_;
	my @ops;
	my $tx = 0;
	while (@ops < $count)
	{
		$tx++;
		my $size = $kind =~ /^(mixed|hot)$/ ? 1 + int(rand(10)) : $self->{tx_rows};
		$size = $count - @ops if $size > $count - @ops;
		my %used;
		for (1 .. $size)
		{
			my $op = $kind eq 'mixed' ? (rand() < 0.6 ? 'i' : rand() < 0.75 ? 'u' : 'd') : substr($kind eq 'hot' ? 'u' : $kind, 0, 1);
			my $key = $self->_pick_key($kind, $op, \%used) // next;
			push @ops, [ $tx, scalar(@ops), $op, $key, ++$self->{version} ];
		}
		die "no keys are left to change\n" if !%used;
	}
	$self->_store_ops(\@ops);
	return $tx;
}

sub _pick_key
{
	my ($self, $kind, $op, $used) = @_;
	my $live = $self->{live} //= [ 1 .. $self->rows ];
	$self->{next_key} //= $self->rows + 1;
	my $key;
	if ($op eq 'i')
	{
		$key = $self->{next_key}++;
		push @$live, $key;
	}
	else
	{
		my $limit = $kind eq 'hot' && rand() < 0.95 ? 1000 : scalar(@$live);
		$limit = @$live if $limit > @$live;
		for (1 .. 20)
		{
			return undef if !$limit;
			my $at = int(rand($limit));
			next if $used->{ $live->[$at] };
			$key = $live->[$at];
			if ($op eq 'd') { $live->[$at] = $live->[-1]; pop @$live; }
			last;
		}
	}
	$used->{$key} = 1 if defined $key;
	return $key;
}

# The list as table helper.ops at the source, outside of its log, and as benchop.ops here.
sub _store_ops
{
	my ($self, $ops) = @_;
	my $dbh = $self->{admin} //= $self->source->connect;
	if (!$self->{has_ops}++)
	{
		$dbh->do('set sql_log_bin = 0');
		$dbh->do('create table helper.ops (tx int not null, seq int not null, op char(1) not null, id bigint not null, v int not null, primary key (tx, seq)) default charset utf8mb4');
		$dbh->do('create procedure helper.run_ops(low int, high int) begin declare k int default low; while k <= high do start transaction; '
			  . 'insert into bench.item select ' . row_source('id', 'v') . " from helper.ops where tx = k and op = 'i'; "
			  . 'update helper.ops o straight_join bench.item t on t.id = o.id set ' . assign_source('t', 'o.id', 'o.v') . " where o.tx = k and o.op = 'u'; "
			  . "delete t from helper.ops o straight_join bench.item t on t.id = o.id where o.tx = k and o.op = 'd'; "
			  . 'commit; set k = k + 1; end while; end');
	}
	$dbh->do('truncate table helper.ops');
	my $file = $self->folder . '/ops';
	open(my $out, '>', $file) or die "$file: $!\n";
	for (my $at = 0; $at < @$ops; $at += 2000)
	{
		my $end = $at + 1999 < $#$ops ? $at + 1999 : $#$ops;
		my @part = @$ops[ $at .. $end ];
		$dbh->do('insert into helper.ops values ' . join(',', map { "($_->[0],$_->[1],'$_->[2]',$_->[3],$_->[4])" } @part));
		print $out map { join("\t", @$_) . "\n" } @part;
	}
	close($out);
	$self->postgres->psql("set client_min_messages = warning; drop table if exists benchop.ops, benchop.stage; "
		  . "create unlogged table benchop.ops (tx int, seq int, op text, id bigint, v bigint); copy benchop.ops from '$file'; "
		  . 'create unlogged table benchop.stage as select op::"char" as op, ' . row_target('id', 'v') . ' from benchop.ops order by seq; '
		  . 'analyze benchop.stage');
	return;
}

# Write the load at the source. Returns the number in table bench.marker that tells that all of it has arrived.
sub write_load
{
	my ($self, $transactions) = @_;
	my $dbh = $self->source->connect;
	$dbh->do("call helper.run_ops(1, $transactions)");
	return $self->write_marker;
}

sub write_marker
{
	my ($self) = @_;
	my $number = ++$self->{marker};
	$self->source->sql('create table if not exists bench.marker (n int primary key)') if $number == 1;
	$self->source->sql("insert into bench.marker values ($number)");
	return $number;
}

# Poll every 5 ms, in a session that stays, until the marker is there.
sub wait_for_marker
{
	my ($self, $number) = @_;
	my $deadline = time() + ($ENV{BENCH_TIMEOUT} || 3600);
	until ($self->session->ask("select count(*) from bench.marker where n = $number") eq '1')
	{
		die "the load did not arrive\n" . $self->pipeline->describe if time() > $deadline;
		select(undef, undef, undef, 0.005);
	}
	return;
}

# Start the stopped pipeline and wait for the marker; returns seconds.
sub time_pipeline
{
	my ($self, $marker) = @_;
	$self->session->ask('checkpoint');
	my $start = time();
	$self->session->ask("select cdc_start_pipeline('bench')");
	$self->wait_for_marker($marker);
	return time() - $start;
}

# ---- results

# Run the named CODEs in an order that turns with the rounds; each returns (rows, seconds), or nothing when it cannot.
sub take_turns
{
	my ($self, $round, $group, @named) = @_;
	my @names = map { $named[ 2 * $_ ] } 0 .. $#named / 2;
	my %code = @named;
	for (1 .. ($round - 1) % @names) { push @names, shift @names; }
	for my $name (@names)
	{
		my ($rows, $seconds) = $code{$name}->();
		$self->record("$group$name", $rows, $seconds) if defined $seconds;
	}
	return;
}

sub record
{
	my ($self, $series, $rows, $seconds) = @_;
	$seconds = 1e-6 if $seconds <= 0;
	push @{ $self->{order} }, $series unless $self->{series}{$series};
	push @{ $self->{series}{$series} }, { rows => $rows + 0, seconds => $seconds + 0 };
	$self->say_what(sprintf('%-34s %9d %s %9.3f s %10.0f %s/s', $series, $rows, $self->{unit}, $seconds, $rows / $seconds, $self->{unit}));
	return;
}

sub median { my @sorted = sort { $a <=> $b } @_; my $half = int(@sorted / 2); return @sorted % 2 ? $sorted[$half] : ($sorted[ $half - 1 ] + $sorted[$half]) / 2; }

# How many times as fast OURS is as THEIRS, by the medians of rows per second; with a goal, or none.
sub ratio
{
	my ($self, $name, $ours, $theirs, $goal) = @_;
	my ($own, $other) = @{ $self->{series} }{ $ours, $theirs };
	if (!$own || !$other) { $self->skip($name, 'not measured'); return; }
	my ($fast, $base) = map { median(map { $_->{rows} / $_->{seconds} } @$_) } $own, $other;
	push @{ $self->{ratios} }, { name => $name, ours => $ours, theirs => $theirs, value => $fast / $base, goal => $goal, at_least => JSON::PP::true };
	return;
}

# A figure that is no ratio. GOAL is an upper bound, or undef.
sub value
{
	my ($self, $name, $value, $unit, $goal) = @_;
	push @{ $self->{values} }, { name => $name, value => $value + 0, unit => $unit, goal => $goal };
	$self->say_what(sprintf('%-34s %12.3f %s', $name, $value, $unit));
	return;
}

# Several things must be equal: name => text, ...
sub check_equal
{
	my ($self, $what, @named) = @_;
	my %text = @named;
	my @different = grep { $text{$_} ne $named[1] } sort keys %text;
	push @{ $self->{checks} }, { name => $what, ok => @different ? JSON::PP::false : JSON::PP::true, of => [ sort keys %text ], detail => join(', ', map { "$_: $text{$_}" } sort keys %text) };
	$self->say_what(($what . ': ' . (@different ? 'NOT EQUAL: ' : 'equal: ')) . $self->{checks}[-1]{detail});
	return !@different;
}

sub skip
{
	my ($self, $what, $why) = @_;
	return if grep { $_->{name} eq $what } @{ $self->{skipped} };
	push @{ $self->{skipped} }, { name => $what, why => $why };
	$self->say_what("SKIPPED: $what: $why");
	return;
}

# Write what was found for the report; dies when something was not equal.
sub finish
{
	my ($self) = @_;
	my %part = (name => $self->{name}, seconds => time() - $self->{started}, rows => $self->rows, rounds => $self->{rounds}, unit => $self->{unit},
		series => [ map { { name => $_, rounds => $self->{series}{$_} } } @{ $self->{order} } ], map { $_ => $self->{$_} } qw(ratios values checks skipped));
	$part{versions} = { postgres => $self->postgres->{version}, source => $self->source ? $self->source->query_value('select version()') : 'sourceless' };
	my $file = ($ENV{BENCH_PARTS} // $self->folder) . "/$self->{name}.json";
	open(my $out, '>', $file) or die "$file: $!\n";
	print $out JSON::PP->new->canonical->pretty->encode(\%part);
	close($out);
	die "what was measured is not equal\n" if grep { !$_->{ok} } @{ $self->{checks} };
	return;
}

# Run a shell command line; dies with its output when it fails, returns (output, seconds).
sub run_shell
{
	my ($command) = @_;
	(my $quoted = $command) =~ s/'/'\\''/g;
	my $start = time();
	my $output = qx(bash -o pipefail -c '$quoted' 2>&1);
	my $seconds = time() - $start;
	die "failed: $command\n$output\n" if $?;
	return ($output, $seconds);
}

1;
